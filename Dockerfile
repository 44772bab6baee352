# An image with nothing in it but the server and the certificates it checks others by.
#   docker build -t coredns .
FROM golang:1.26 AS build
RUN apt-get update && apt-get install -y --no-install-recommends libcap2-bin ca-certificates
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o /coredns .
# Port 53 without root: together with the capability that the manifest adds.
RUN setcap cap_net_bind_service=+ep /coredns

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /coredns /coredns
USER 65532:65532
EXPOSE 53/udp 53/tcp
ENTRYPOINT ["/coredns"]
