// Package parse reads the addresses that stand in configurations.
//
//	"tls://192.0.2.1" ──Transport──▶ "tls", "192.0.2.1" ──HostPortOrFile──▶ "tls://192.0.2.1:853"
//
// An IPv6 address may have a zone ("fe80::1%eth0"). HostPortOrFile takes any text after % that follows an address,
// since forward writes the name of a TLS server there. Nothing is resolved or dialled; only HostPortOrFile reads
// files. Start at HostPortOrFile.
package parse
