package validator

import (
	"context"
	"time"

	"github.com/coredns/coredns/plugin/metrics/vars"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/validate"

	"github.com/miekg/dns"
)

// All names of a zone wait for its keys. So keys that are in use are fetched again behind the client when half of their
// time is over, if the resolver below does so, too; it has them again by then, or soon.

const (
	renewPause = 10 * time.Second // between two times for one zone
	renewals   = 16               // under way at most
)

// renewer fetches keys again.
type renewer struct {
	*Validator
	ctx    context.Context // the plugin's life
	places chan struct{}
}

// renew fetches a zone's keys, and validates them. It does not wait.
func (r *renewer) renew(zone string) {
	if !r.prefetches() {
		return
	}
	select {
	case r.places <- struct{}{}:
		go r.fetch(zone)
	default: // it is tried once more
	}
}

// fetch is renew, and waits. What is not secure is forgotten: what is known holds until its time is over.
func (r *renewer) fetch(zone string) {
	defer func() {
		<-r.places
		if v := recover(); v != nil {
			logger.Errorf("Recovered from panic while fetching keys of %s: %v", rrset.Text(zone), v)
			vars.Panic.Inc()
		}
	}()
	ctx, cancel := context.WithTimeout(r.ctx, ownTime)
	defer cancel()
	i := r.keeper.inquire(ctx, validate.Question{Name: zone, Type: dns.TypeDNSKEY})
	reply, _, _ := i.ask(i.q, i.query)
	if reply == nil {
		return
	}
	conf := r.live.Load().conf
	memory := &skeptic{Memory: r.memory, ctx: ctx, purse: &i.purse}
	memory.doubt(map[string]bool{zone: true}, i.now())
	conf.Memory = memory
	i.pass(&conf, reply)
}
