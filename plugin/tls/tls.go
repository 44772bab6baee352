// Package tls gives the encrypted listeners of a server block their certificate: from files, which are looked at again and
// again, or from a certificate authority by ACME, which is shown by a TXT record that the server itself answers.
//
//	tls CERT KEY [CA]  ──files.load──▶ pair ◀──swapped when the files change── files.watch
//	                                    │
//	          handshake ──GetCertificate┘
//
//	tls { acme … }     ──issuer──▶ certmagic ──▶ certificate ──▶ handshake
//	                                    │
//	     CA ──TXT _acme-challenge…──▶ challenge (a plugin of every block)
//
// A configuration never changes once the server uses it: handshakes ask for the certificate of the moment, by an atomic
// pointer. Goroutines begin in OnStartup and end in OnShutdown. Start at setup; then files.go, or acme.go.
package tls

import (
	"crypto/tls"

	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/log"
)

const pluginName = "tls"

var logger = log.NewWithPlugin(pluginName)

// clientAuth is what the words of the option client_auth mean.
var clientAuth = map[string]tls.ClientAuthType{
	"nocert":             tls.NoClientCert,
	"request":            tls.RequestClientCert,
	"require":            tls.RequireAnyClientCert,
	"verify_if_given":    tls.VerifyClientCertIfGiven,
	"require_and_verify": tls.RequireAndVerifyClientCert,
}

// under is path, below root if it is relative; none stays none.
func under(root, path string) string {
	if path == "" {
		return ""
	}
	return corefile.Below(root, path)
}
