# elmokit serve in a slim image, without a compiler. No image was built (the project's machines have no
# Docker), but its lines were run in a bare Debian: docs/guides/serve.md says which.
#
#   python recipes/build_wheels.py dist
#   docker build -t elmokit --build-arg TORCH_INDEX=URL .
#   docker run -p 8080:8080 -e ELMOKIT_API_KEY=secret elmokit --model en
#
# URL is PyTorch's index of builds for the CPU, which its installation page names: it is asked beside the
# usual index. Without it the image has the default build for Linux, with gigabytes of CUDA.
FROM python:3.12-slim
ARG TORCH_INDEX=

COPY constraints.txt dist/elmokit-*-manylinux*_x86_64.whl /wheels/
RUN pip install --no-cache-dir -c /wheels/constraints.txt ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} \
        "elmokit[serve,ko] @ file://$(ls /wheels/*.whl)" \
    && rm -r /wheels \
    && useradd --create-home elmokit

USER elmokit
EXPOSE 8080
HEALTHCHECK --start-period=60s CMD ["python", "-c", \
    "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/health')"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["elmokit", "serve", "--host", "0.0.0.0", "--port", "8080"]
