"""Confirms claims of docs/not_verified.toml in an account of AWS, or rehearses the same on the local AWS.

```
python -m tools.verify list
python -m tools.verify plan object_writes callers
python -m tools.verify run object_writes callers --test-account 111122223333 --report report.md
python -m tools.verify clean object_writes --test-account 111122223333
```

`run` deploys the stacks of an experiment, makes its observations, and destroys the stacks, also after Ctrl-C. The
report goes into a pull request, which removes the confirmed claims from the file. With the variables of
`cdk-triton local up`, the same commands reach the local AWS. That shows that the program works, and says nothing about
AWS.

* `claims`: the rows of the file;
* `experiment`: what an experiment is;
* `trial`: one run of an experiment in an account;
* `report`: what was seen;
* `app`: the CDK app with the stacks of an experiment;
* `experiments`: one file for each experiment.
"""
