"""`python -m cdk_triton`: the same as `cdk-triton`, for an interpreter whose scripts are not on PATH."""

from cdk_triton.cli import main

if __name__ == "__main__":
    main()
