from elmokit.web.api.metrics import Metrics


def test_histograms_are_cumulative_and_counters_have_labels():
    metrics = Metrics()
    for value in (1, 2, 3, 10**9):
        metrics.observe("te_batch_next_size", value)
    metrics.count(texts=None)
    metrics.count(texts=3)
    metrics.count(texts=3, success=True)
    metrics.fail("overloaded")
    lines = metrics.render(queue_size=7).splitlines()
    assert "te_queue_size 7" in lines
    assert 'te_batch_next_size_bucket{le="1"} 1' in lines
    assert 'te_batch_next_size_bucket{le="2"} 2' in lines
    assert 'te_batch_next_size_bucket{le="4"} 3' in lines
    assert 'te_batch_next_size_bucket{le="+Inf"} 4' in lines
    assert "te_batch_next_size_count 4" in lines
    assert "te_batch_next_size_sum 1000000006.0" in lines
    assert 'te_request_count{method="single"} 1' in lines
    assert 'te_request_success{method="batch"} 1' in lines
    assert 'te_request_failure{err="overloaded"} 1' in lines
    names = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    assert {
        "te_request_count", "te_request_duration", "te_request_tokenization_duration",
        "te_request_queue_duration", "te_request_inference_duration", "te_queue_size",
        "te_batch_next_size",
    } <= names  # fmt: skip
