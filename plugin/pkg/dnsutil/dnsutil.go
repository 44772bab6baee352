// Package dnsutil holds small pure functions over names and messages in miekg/dns form: reverse names, joining
// and trimming names, the TTL of a whole message, reading a request.
//
// Names are in presentation form, in any case, with or without the final dot unless said otherwise; what is
// escaped is compared as it is written. Every function may be called from any number of goroutines at the
// same time. Code that works on packets uses package wire instead. Start at UnpackRequest.
package dnsutil
