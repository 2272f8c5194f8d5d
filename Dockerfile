# elmokit serve in a slim image, without a compiler. No image was built (the project's machines have no
# Docker), but its lines were run in a bare Debian: docs/guides/serve.md says which.
#
#   python recipes/build_wheels.py dist
#   docker build . -t elmokit
#   docker run -p 8080:8080 -e ELMOKIT_API_KEY=secret elmokit --model en
#
# Taggers and vectors need no PyTorch; for other task models (--task), install elmokit[serve,ko,train].
FROM python:3.12-slim
COPY constraints.txt dist/elmokit-*-manylinux*_x86_64.whl /wheels/
RUN pip install --no-cache-dir -c /wheels/constraints.txt \
        "elmokit[serve,ko] @ file://$(ls /wheels/*.whl)" \
    && rm -r /wheels \
    && useradd --create-home elmokit

USER elmokit
EXPOSE 8080
HEALTHCHECK --start-period=60s CMD ["python", "-c", \
    "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/health')"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["elmokit", "serve", "--host", "0.0.0.0", "--port", "8080"]
