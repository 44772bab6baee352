package dynupdate

import (
	"github.com/coredns/coredns/plugin/pkg/log"

	"github.com/miekg/dns"
)

// talk is what is logged of updates: each that changes something, and refusals, of which there may be many.
type talk struct{ refusals log.Few }

// of logs what came of one UPDATE.
func (t *talk) of(zone string, quiet bool, key, client string, res result) {
	switch {
	case res.err != nil:
		if t.refusals.May() {
			logger.Errorf("UPDATE %s by %s from %s failed: %v", zone, named(key), client, res.err)
		}
	case res.again:
		logger.Debugf("UPDATE %s by %s from %s was answered before", zone, named(key), client)
	case res.rcode != dns.RcodeSuccess && key == "":
		logger.Debugf("UPDATE %s from %s without a signature: %s", zone, client, dns.RcodeToString[res.rcode])
	case res.rcode != dns.RcodeSuccess:
		if !quiet && t.refusals.May() {
			logger.Infof("UPDATE %s by %s from %s: %s: %s", zone, key, client, dns.RcodeToString[res.rcode], res.failed)
		}
	case res.from != res.to && !quiet:
		logger.Infof("UPDATE %s by %s from %s: +%d -%d serial %d->%d", zone, key, client, res.added, res.removed, res.from, res.to)
	}
}

func named(key string) string {
	if key == "" {
		return "nobody"
	}
	return key
}
