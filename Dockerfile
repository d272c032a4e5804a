# The service in a small image, run by nobody in particular. TLS belongs in front of it (docs/guides/service.md).
FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN python -m venv /opt/reticent \
 && /opt/reticent/bin/pip install --no-cache-dir '.[serve]' 'psycopg[binary]>=3.2' \
 && find /opt/reticent -name '__pycache__' -prune -exec rm -rf {} + \
 && /opt/reticent/bin/python -m compileall -q /opt/reticent/lib

FROM python:3.12-slim
RUN useradd --system --uid 10001 --home-dir /var/lib/reticent --create-home reticent
COPY --from=build /opt/reticent /opt/reticent
ENV PATH=/opt/reticent/bin:$PATH OPENBLAS_NUM_THREADS=1 PYTHONUNBUFFERED=1 RETICENT_STORE=/var/lib/reticent/service.db
USER reticent
WORKDIR /var/lib/reticent
# The store (unless it is PostgreSQL) and the guard, which must outlive the container and must not be restored with it.
VOLUME /var/lib/reticent
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/readyz', timeout=4)"]
ENTRYPOINT ["reticent", "serve", "--host", "0.0.0.0"]
