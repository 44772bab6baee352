package udp

import (
	"fmt"
	"slices"
	"testing"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/readahead"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// noted is a Decider with one table, which notes what it is told.
type noted struct {
	service.Decider
	large bool
	looks int
	panic bool
	told  []string
}

func (n *noted) LargeTables(to []readahead.Table) []readahead.Table {
	if n.looks++; n.large {
		to = append(to, n)
	}
	return to
}
func (n *noted) Large() bool { return n.large }
func (n *noted) ReadAhead(q *wire.Query, step int) {
	n.told = append(n.told, fmt.Sprintf("%s %d", wire.Text(q.Lower()), step))
	if n.panic {
		panic("table")
	}
}

// packets is a batch.
type packets struct {
	batchSocket
	all [][]byte
}

func (p *packets) packet(i int) []byte { return p.all[i] }

// packetsOf is queries for names; "" is a packet that is none.
func packetsOf(t *testing.T, names ...string) (all [][]byte) {
	t.Helper()
	for _, name := range names {
		b := []byte("none")
		if name != "" {
			var err error
			if b, err = coretest.Query(name).Pack(); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, b)
	}
	return all
}

// batch parses a batch, and notes when each of its packets is served.
func (n *noted) batch(t *testing.T, r *queries, asTheyCame bool, names ...string) {
	t.Helper()
	sock := &packets{all: packetsOf(t, names...)}
	r.begin(&service.Service{Decider: n}, len(names), asTheyCame)
	for i, name := range names {
		q, proper := r.query(i, sock.packet(i), sock)
		if proper != (name != "") || proper && wire.Text(q.Lower()) != name {
			t.Errorf("packet %d: got %s %t", i, wire.Text(q.Lower()), proper)
		}
		n.told = append(n.told, fmt.Sprint("served ", i))
	}
}

// TestReadAhead: a table is told of each query in two steps, the second one before the query before it is served.
func TestReadAhead(t *testing.T) {
	if !readahead.Works {
		t.Skip("nothing is read ahead on this processor: run it on amd64 or arm64")
	}
	n, r := &noted{large: true}, new(queries)
	n.batch(t, r, true, "a.", "b.", "c.", "d.", "", "e.")
	want := []string{"a. 0", "b. 0", "a. 1", "c. 0", "b. 1", "served 0", "d. 0", "c. 1", "served 1", "d. 1", "served 2",
		"e. 0", "e. 1", "served 3", "served 4", "served 5"}
	if !slices.Equal(n.told, want) {
		t.Errorf("got  %q\nwant %q", n.told, want)
	}
	for _, tc := range []struct {
		name       string
		asTheyCame bool
		names      []string
	}{{"one packet", true, []string{"a."}}, {"packets in other forms", false, []string{"a.", "b."}}} {
		n.told = nil
		if n.batch(t, r, tc.asTheyCame, tc.names...); len(n.told) != len(tc.names) {
			t.Errorf("%s: got %q", tc.name, n.told)
		}
	}
}

// TestReadAheadLooks: a loop looks again after some time which tables are large.
func TestReadAheadLooks(t *testing.T) {
	if !readahead.Works {
		t.Skip("nothing is read ahead on this processor: run it on amd64 or arm64")
	}
	n, r := new(noted), new(queries)
	for range 3 * (lookAfter + 1) {
		n.batch(t, r, true, "a.", "b.")
	}
	if n.looks != 3 || len(n.told) != n.looks*2*(lookAfter+1) {
		t.Fatalf("%d looks, told %d times", n.looks, len(n.told))
	}
	n.large, n.told = true, nil
	if n.batch(t, r, true, "a.", "b."); len(n.told) != 2+2*2 {
		t.Errorf("got %q", n.told)
	}
}

// TestReadAheadPanics: a table that panics is told of nothing more, and queries are served.
func TestReadAheadPanics(t *testing.T) {
	if !readahead.Works {
		t.Skip("nothing is read ahead on this processor: run it on amd64 or arm64")
	}
	n, r := &noted{large: true, panic: true}, new(queries)
	n.batch(t, r, true, "a.", "b.", "c.")
	for range 2 * lookAfter {
		n.batch(t, r, true, "a.", "b.", "c.")
	}
	if want := 1 + 3*(1+2*lookAfter); len(n.told) != want {
		t.Errorf("told %d times, want %d", len(n.told), want)
	}
}
