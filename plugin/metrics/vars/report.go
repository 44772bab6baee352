package vars

import (
	"time"

	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// ReportOptions changes what Report counts.
type ReportOptions struct {
	// OriginalReqSize is the query's length in octets before plugins changed it; 0 means: as it is now.
	OriginalReqSize int
}

// ReportOption sets one of the ReportOptions.
type ReportOption func(*ReportOptions)

// WithOriginalReqSize says how long the query was, in octets, when it came.
func WithOriginalReqSize(size int) ReportOption {
	return func(o *ReportOptions) { o.OriginalReqSize = size }
}

// Report counts one query and its reply. size is the reply's length in octets without compression and
// start is when the query came.
func Report(server string, req request.Request, zone, view, rcode, plugin string, size int, start time.Time, opts ...ReportOption) {
	var o ReportOptions
	for _, opt := range opts {
		opt(&o)
	}
	if o.OriginalReqSize == 0 {
		o.OriginalReqSize = req.Len()
	}
	proto := req.Proto()
	RequestCount.WithLabelValues(server, zone, view, proto, families[req.Family()&1], TypeLabel(req.QType())).Inc()
	if req.Do() {
		RequestDo.WithLabelValues(server, zone, view).Inc()
	}
	RequestDuration.WithLabelValues(server, zone, view).Observe(time.Since(start).Seconds())
	RequestSize.WithLabelValues(server, zone, view, proto).Observe(float64(o.OriginalReqSize))
	ResponseSize.WithLabelValues(server, zone, view, proto).Observe(float64(size))
	ResponseRcode.WithLabelValues(server, zone, view, rcode, plugin).Inc()
}

var families = [2]string{"2", "1"} // by family modulo 2

// TypeLabel is the type label of a query type: its mnemonic for those that people ask
// for, "other" for all else, so that nobody can make series at will.
func TypeLabel(qtype uint16) string {
	if ownLabel(qtype) {
		return dns.TypeToString[qtype]
	}
	return "other"
}

// ownLabel reports whether a type has a label of its own.
func ownLabel(qtype uint16) bool {
	switch qtype {
	case dns.TypeA, dns.TypeAAAA, dns.TypeCNAME, dns.TypeDNSKEY, dns.TypeDS, dns.TypeMX, dns.TypeNSEC, dns.TypeNSEC3, dns.TypeNS, dns.TypePTR,
		dns.TypeRRSIG, dns.TypeSOA, dns.TypeSRV, dns.TypeTXT, dns.TypeHTTPS, dns.TypeSVCB, dns.TypeIXFR, dns.TypeAXFR, dns.TypeANY:
		return true
	}
	return false
}
