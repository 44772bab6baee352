// Package msg is the form in which backends keep services: as JSON under keys that are names turned around, as SkyDNS
// introduced it.
//
//	www.example.org.  ◀──Domain── /skydns/org/example/www ──▶ {"host":"192.0.2.1","port":80}
//	                  ───Path──▶                                        │
//	                                                      Service.NewA, NewSRV, … ──▶ records
//
// The plugins etcd, kubernetes and others with a plugin.ServiceBackend make their answers of it. The package is pure; a
// Service may be read by any number of goroutines. Labels stand in keys as they are written in names; one that has a
// slash in it cannot be told from two. Start at Service.
package msg
