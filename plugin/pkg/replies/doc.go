// Package replies judges what comes from upstreams: is it a reply, is it whole, is it one to this query (RFC 5452
// §9.1)? It works on octets, without unpacking, and knows nothing of sockets or of who asked.
//
//	octets ──▶ Inspect ──▶ Incoming, Verdict ──▶ Incoming.IsFor the query ──▶ Facts, for who decides what comes of it
//
// reply.go has that, rdata.go whether records are whole. What is said with a header alone is in bare.go, letters of
// random case in lettercase.go. hop.go cuts what concerns neighbours only out of messages, options.go finds options.
//
// All functions may be called from any number of goroutines; octets are only read unless a function says otherwise.
// Start at Inspect.
package replies
