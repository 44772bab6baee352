package secondary

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"slices"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/keyring"
	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/coredns/coredns/plugin/pkg/zone/fetch"
)

// source is where zones come from, as one directive tells.
type source struct {
	primaries []string        // host:port
	secure    map[string]bool // those of primaries that are asked over TLS
	tls       *tls.Config
	key       *fetch.Key // without its secret, and perhaps without its algorithm; see currentKey
	find      func(name string) (keyring.Key, bool)
	limits    fetch.Limits
	zonemd    bool // refuse zones that do not match their ZONEMD record
	storage   string
	updates   bool // UPDATE messages go to the primaries
}

// prepare sees that there is the key, and where it is to be looked up from then on.
func (s *source) prepare(find func(name string) (keyring.Key, bool)) error {
	s.find = find
	if s.key != nil {
		if _, ok := find(s.key.Name); !ok {
			return fmt.Errorf("tsig: there is no key %q: the tsig plugin has to have it", s.key.Name)
		}
	}
	return nil
}

// currentKey is the key as it is now, nil for none. One that was taken away signs nothing that a primary would take.
func (s *source) currentKey() *fetch.Key {
	if s.key == nil {
		return nil
	}
	k := *s.key
	now, _ := s.find(k.Name)
	k.Secret, k.Algorithm = now.Secret, cmp.Or(k.Algorithm, now.Algorithm, keyring.DefaultAlgorithm)
	return &k
}

// Who asks one primary with one key gets one zone, whose serials can be compared. With another key it may be another
// one, as primaries tell views by keys; and what came without TLS may be anybody's.

// names is the primaries as the directive has them.
func (s *source) names() (names []string) {
	for _, p := range s.primaries {
		if s.secure[p] {
			p = transport.TLS + "://" + p
		}
		names = append(names, p)
	}
	return names
}

func (s *source) keyName() string {
	if s.key == nil {
		return ""
	}
	return s.key.Name
}

func (s *source) serverName() string {
	if s.tls == nil || len(s.secure) == 0 {
		return ""
	}
	return s.tls.ServerName
}

// same reports whether two sources have the same primaries.
func (s *source) same(o *source) bool {
	return s.related(o) && slices.Equal(s.names(), o.names())
}

// related reports whether two sources have a primary in common.
func (s *source) related(o *source) bool {
	return s.serverName() == o.serverName() && s.knows(o.names(), o.keyName())
}

// knows reports whether one of some primaries, asked with a key, is one of the source's.
func (s *source) knows(names []string, key string) bool {
	ours := s.names()
	return s.keyName() == key && slices.ContainsFunc(names, func(n string) bool { return slices.Contains(ours, n) })
}

// Beside a stored zone stands where it is from, in a comment.

const (
	noteBegin = "; from "
	noteKey   = " key "
)

// note is that comment.
func (s *source) note() string {
	text := noteBegin + strings.Join(s.names(), " ")
	if s.key != nil {
		text += noteKey + s.key.Name
	}
	return text
}

// noted reports whether a comment tells of a source that is related; one that is no such comment tells of no other.
func (s *source) noted(line string) bool {
	from, ok := strings.CutPrefix(line, noteBegin)
	if !ok {
		return true
	}
	names, key, _ := strings.Cut(from, noteKey)
	return s.knows(strings.Fields(names), key)
}
