// Transports tells for which schemes a server can be made.
package main

import (
	"fmt"

	"github.com/coredns/coredns/core/dnsserver"
	_ "github.com/coredns/coredns/plugin/tls"

	"github.com/coredns/caddy"
)

func main() {
	for _, scheme := range []string{"dns", "tls", "grpc", "https", "https3", "quic"} {
		text := fmt.Sprintf("%s://.:5300 {\ntls cert.pem key.pem\n}\n", scheme)
		err := dnsserver.Validate(caddy.CaddyfileInput{Filepath: "Corefile", Contents: []byte(text), ServerTypeName: "dns"})
		fmt.Println(scheme, err)
	}
}
