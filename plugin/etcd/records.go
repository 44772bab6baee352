package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/coredns/coredns/plugin/etcd/msg"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
	"go.etcd.io/etcd/api/v3/mvccpb"
	etcdcv3 "go.etcd.io/etcd/client/v3"
)

// extent is which keys are meant beside the one at a path.
type extent int

const (
	itself   extent = iota // no others
	allBelow               // those below it, if there are any instead of it
	oneBelow               // one of those
)

// taking takes keys, as there may be several pages of them; of is how many there are in all, about.
type taking func(kvs []*mvccpb.KeyValue, of int)

// Records implements plugin.ServiceBackend: the services at the name of state, and below it unless exact is set. A label
// that is "*" or "any" stands for each label. A value that is no service is left out, with a warning.
func (e *Etcd) Records(ctx context.Context, state request.Request, exact bool) ([]msg.Service, error) {
	name := state.Name()
	path, wildcard := msg.PathWithWildcard(name, e.PathPrefix)
	which, r := allBelow, e.reader(state.QType())
	if exact && !wildcard {
		which = itself
	}
	if wildcard {
		r.pattern = strings.Split(msg.Path(name, e.PathPrefix), "/")
	}
	if err := e.get(ctx, path, which, r.read); err != nil {
		return nil, err
	}
	return r.all(ctx), nil
}

// exists looks whether there is anything at the name of state, or below it. It returns no error if so.
func (e *Etcd) exists(ctx context.Context, state request.Request) error {
	path, _ := msg.PathWithWildcard(state.Name(), e.PathPrefix)
	return e.get(ctx, path, oneBelow, func([]*mvccpb.KeyValue, int) {})
}

// get reads the keys at path, or if which says so those below it if there are any.
func (e *Etcd) get(ctx context.Context, path string, which extent, take taking) error {
	if e.view == nil {
		return e.ask(ctx, path, which, take)
	}
	if n := e.view.count(path); n > narrow && which == allBelow {
		if err := e.waitTurn(ctx, n); err != nil {
			return err
		}
	}
	kvs, ok := e.view.get(path, which)
	switch {
	case !ok:
		return e.ask(ctx, path, which, take)
	case len(kvs) == 0:
		return errKeyNotFound
	}
	take(kvs, len(kvs))
	return nil
}

// reader reads services from values.
type reader struct {
	e        *Etcd
	qtype    uint16
	pattern  []string // a key with labels that stand for any, nil for no such
	services []msg.Service
	leased   []leased
}

// leased is a service whose TTL is not known before its lease is.
type leased struct {
	at int
	id etcdcv3.LeaseID
}

func (e *Etcd) reader(qtype uint16) *reader { return &reader{e: e, qtype: qtype} }

// read adds the services of a page of keys, of so many in all.
func (r *reader) read(kvs []*mvccpb.KeyValue, of int) {
	if r.services == nil && r.pattern == nil {
		r.services = make([]msg.Service, 0, of)
	}
	for _, kv := range kvs {
		if r.pattern != nil && !fits(string(kv.Key), r.pattern) {
			continue
		}
		s := msg.Service{}
		err := json.Unmarshal(kv.Value, &s)
		if err == nil {
			err = check(&s)
		}
		if err != nil {
			if text := fmt.Sprintf("%s: %v", kv.Key, err); r.e.warnOnce.due(text, time.Now()) {
				logger.Warningf("Not a service: %s", text)
			}
			continue
		}
		if s.Host == "" && (r.qtype != dns.TypeTXT || s.Text == "") {
			continue
		}
		s.Key = r.e.key(string(kv.Key))
		if kv.Lease != 0 {
			r.leased = append(r.leased, leased{len(r.services), etcdcv3.LeaseID(kv.Lease)})
		} else {
			s.TTL = r.e.ttl(0, &s)
		}
		if s.Priority == 0 {
			s.Priority = defaultPriority
		}
		r.services = append(r.services, s)
	}
}

// all is the services that were read. Their leases are asked for when there are no more keys to come: all of them
// together have as much time as one, and none of that which etcd has for the keys.
func (r *reader) all(ctx context.Context) []msg.Service {
	return r.allAfter(ctx, r.leases())
}

// allInTime is all, for somebody who waits as long as it takes, if etcd tells anything.
func (r *reader) allInTime(ctx context.Context) []msg.Service {
	return r.allAfter(ctx, slices.Collect(slices.Chunk(r.leases(), leaseAskers))...)
}

// leases is those of the services, in order.
func (r *reader) leases() (ids []etcdcv3.LeaseID) {
	for _, l := range r.leased {
		ids = append(ids, l.id)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// allAfter is the services, after leases were asked for, one part after the other.
func (r *reader) allAfter(ctx context.Context, parts ...[]etcdcv3.LeaseID) []msg.Service {
	for _, ids := range parts {
		r.e.leases.ask(ctx, r.e.client(), ids, time.Now().Add(r.e.leasePatience()))
	}
	for _, l := range r.leased {
		s := &r.services[l.at]
		s.TTL = r.e.ttl(int64(l.id), s)
	}
	return r.services
}

var (
	errNoName = errors.New("the host is neither an address nor a name")
	errLong   = errors.New("the text is longer than a record may be")
)

// maxText is how long a text may be, with an octet for each of its strings, to be the data of a record.
const maxText = math.MaxUint16 - math.MaxUint16/255 - 1

// check tells what of a service no record can hold: it would spoil the whole reply that it is a part of.
func check(s *msg.Service) error {
	switch {
	case len(s.Text) > maxText:
		return errLong
	case s.Host == "", net.ParseIP(s.Host) != nil:
		return nil
	}
	var buf [wire.MaxName + 1]byte
	name := dns.Fqdn(s.Host)
	if _, err := wire.AppendName(buf[:0], name); err != nil || !dns.IsFqdn(name) {
		return errNoName
	}
	return nil
}

// key is a key as package msg has them: with one element, whatever it be, before those of the name.
func (e *Etcd) key(key string) string {
	prefix := msg.Path("", e.PathPrefix)
	if prefix != "/" && strings.Count(prefix, "/") == 1 {
		return key
	}
	return "/" + defaultPath + "/" + strings.TrimPrefix(strings.TrimPrefix(key, prefix), "/")
}

// fits reports whether a key begins as pattern does, in which "*" and "any" stand for any part.
func fits(key string, pattern []string) bool {
	parts := strings.Split(key, "/")
	if len(parts) < len(pattern) {
		return false
	}
	for i, want := range pattern {
		if want != "*" && want != "any" && want != parts[i] {
			return false
		}
	}
	return true
}
