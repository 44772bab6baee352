# An image with nothing in it but the server, the licences of what it was built from, and the certificates it checks others by. The server is built as `make` does it.
#   make image
# or, without the commit and the tag that it tells by -version then:
#   docker build -t coredns .
FROM golang:1.26 AS build
RUN apt-get update && apt-get install -y --no-install-recommends libcap2-bin ca-certificates make
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG GITCOMMIT= GITTAG=
RUN make coredns BINARY=/coredns GITCOMMIT="$GITCOMMIT" GITTAG="$GITTAG"
# Port 53 without root: together with the capability that the manifest adds.
RUN setcap cap_net_bind_service=+ep /coredns
RUN go run ./deploy/licenses /coredns >/licenses.txt

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /src/LICENSE /licenses.txt /
COPY --from=build /coredns /coredns
USER 65532:65532
EXPOSE 53/udp 53/tcp
ENTRYPOINT ["/coredns"]
