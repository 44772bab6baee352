// Package pb is the gRPC service over which the server answers (grpc:// in a Corefile) and asks (the plugin grpc):
// coredns.dns.DnsService, whose one method takes and returns a DNS message as octets.
//
// The Go code is generated from dns.proto by go generate, for which protoc, protoc-gen-go and protoc-gen-go-grpc must
// be installed.
package pb

//go:generate protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative dns.proto
