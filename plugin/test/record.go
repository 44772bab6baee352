package test

import "github.com/miekg/dns"

// The functions of this file make a record of its presentation form, such as "www.example.org. 5 IN A 192.0.2.1". They
// panic if that is no record of the type.

func A(rr string) *dns.A           { return record[*dns.A](rr) }
func AAAA(rr string) *dns.AAAA     { return record[*dns.AAAA](rr) }
func CAA(rr string) *dns.CAA       { return record[*dns.CAA](rr) }
func CNAME(rr string) *dns.CNAME   { return record[*dns.CNAME](rr) }
func DNAME(rr string) *dns.DNAME   { return record[*dns.DNAME](rr) }
func DNSKEY(rr string) *dns.DNSKEY { return record[*dns.DNSKEY](rr) }
func DS(rr string) *dns.DS         { return record[*dns.DS](rr) }
func HINFO(rr string) *dns.HINFO   { return record[*dns.HINFO](rr) }
func HTTPS(rr string) *dns.HTTPS   { return record[*dns.HTTPS](rr) }
func MX(rr string) *dns.MX         { return record[*dns.MX](rr) }
func NAPTR(rr string) *dns.NAPTR   { return record[*dns.NAPTR](rr) }
func NS(rr string) *dns.NS         { return record[*dns.NS](rr) }
func NSEC(rr string) *dns.NSEC     { return record[*dns.NSEC](rr) }
func PTR(rr string) *dns.PTR       { return record[*dns.PTR](rr) }
func RRSIG(rr string) *dns.RRSIG   { return record[*dns.RRSIG](rr) }
func SOA(rr string) *dns.SOA       { return record[*dns.SOA](rr) }
func SRV(rr string) *dns.SRV       { return record[*dns.SRV](rr) }
func SVCB(rr string) *dns.SVCB     { return record[*dns.SVCB](rr) }
func TXT(rr string) *dns.TXT       { return record[*dns.TXT](rr) }

func record[T dns.RR](text string) T {
	rr, err := dns.NewRR(text)
	if err != nil {
		panic("test: record " + text + ": " + err.Error())
	}
	return rr.(T)
}

// OPT returns an OPT record with the UDP size bufsize in octets, and DO if do is set.
func OPT(bufsize int, do bool) *dns.OPT {
	o := &dns.OPT{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeOPT}}
	o.SetUDPSize(uint16(bufsize))
	if do {
		o.SetDo()
	}
	return o
}
