package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"strings"
	"time"

	"github.com/coredns/coredns/plugin/etcd/msg"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// Records implements plugin.ServiceBackend: the services at the name of state, and below it unless exact is set. A label
// that is "*" or "any" stands for each label. A value that is no service is left out, with a warning.
func (e *Etcd) Records(ctx context.Context, state request.Request, exact bool) ([]msg.Service, error) {
	name := state.Name()
	path, wildcard := msg.PathWithWildcard(name, e.PathPrefix)
	kvs, err := e.get(ctx, path, !exact || wildcard)
	if err != nil {
		return nil, err
	}
	var pattern []string
	if wildcard {
		pattern = strings.Split(msg.Path(name, e.PathPrefix), "/")
	}
	return e.services(ctx, kvs, pattern, state.QType()), nil
}

// get is the keys at path, or if recursive is set those below it if there are any.
func (e *Etcd) get(ctx context.Context, path string, recursive bool) ([]*mvccpb.KeyValue, error) {
	if e.view != nil {
		if kvs, ok := e.view.get(path, recursive); ok {
			if len(kvs) == 0 {
				return nil, errKeyNotFound
			}
			return kvs, nil
		}
	}
	return e.ask(ctx, path, recursive)
}

// services reads services from values. pattern is a key with labels that stand for any, nil for no such.
func (e *Etcd) services(ctx context.Context, kvs []*mvccpb.KeyValue, pattern []string, qtype uint16) (all []msg.Service) {
	met := map[msg.Service]bool{}
	for _, kv := range kvs {
		if pattern != nil && !fits(string(kv.Key), pattern) {
			continue
		}
		s := msg.Service{}
		err := json.Unmarshal(kv.Value, &s)
		if err == nil {
			err = check(&s)
		}
		if err != nil {
			if text := fmt.Sprintf("%s: %v", kv.Key, err); e.warnOnce.due(text, time.Now()) {
				logger.Warningf("Not a service: %s", text)
			}
			continue
		}
		s.Key = e.key(string(kv.Key))
		if met[s] {
			continue
		}
		met[s] = true
		if s.Host == "" && (qtype != dns.TypeTXT || s.Text == "") {
			continue
		}
		s.TTL = e.ttl(ctx, kv, &s)
		if s.Priority == 0 {
			s.Priority = defaultPriority
		}
		all = append(all, s)
	}
	return all
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
