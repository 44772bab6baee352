package etcd

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/coredns/coredns/plugin/etcd/msg"
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
		if err := json.Unmarshal(kv.Value, &s); err != nil {
			if text := fmt.Sprintf("%s: %v", kv.Key, err); e.warnOnce.due(text, time.Now()) {
				logger.Warningf("Not a service: %s", text)
			}
			continue
		}
		s.Key = string(kv.Key)
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
