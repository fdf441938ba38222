"""CT4xx single-model containers, CT5xx multi-model endpoints, CT65x what an endpoint holds and passes on."""
