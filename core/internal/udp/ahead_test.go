package udp

import (
	"fmt"
	"slices"
	"strings"
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
func (n *noted) ReadAhead(q *wire.Query, left int, found any) any {
	n.told = append(n.told, fmt.Sprintf("%s %d", wire.Text(q.Lower()), left))
	if n.panic {
		panic("table")
	}
	// It gets back what it has found for this query.
	if want := fmt.Sprintf("%s %d", wire.Text(q.Lower()), left+1); left < readahead.First && found != want || left == readahead.First && found != nil {
		n.told = append(n.told, fmt.Sprintf("found %v", found))
	}
	return n.told[len(n.told)-1]
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

// TestReadAhead: a table is told of each query step by step, the last one before the query before it is served.
func TestReadAhead(t *testing.T) {
	if !readahead.Works {
		t.Skip("nothing is read ahead on this processor: run it on amd64 or arm64")
	}
	n, r := &noted{large: true}, new(queries)
	n.batch(t, r, true, "a.", "b.", "c.", "d.", "", "e.", "f.", "g.")
	want := strings.Split("a. 5,b. 5,a. 4,c. 5,b. 4,a. 3,d. 5,c. 4,b. 3,a. 2,d. 4,c. 3,b. 2,a. 1,e. 5,d. 3,c. 2,b. 1,served 0,"+
		"f. 5,e. 4,d. 2,c. 1,served 1,g. 5,f. 4,e. 3,d. 1,served 2,g. 4,f. 3,e. 2,served 3,g. 3,f. 2,e. 1,served 4,"+
		"g. 2,f. 1,served 5,g. 1,served 6,served 7", ",")
	if !slices.Equal(n.told, want) {
		t.Errorf("got  %q\nwant %q", n.told, want)
	}
	for i := range r.ring {
		if found := r.ring[i].found; found != [readahead.MostTables]any{} {
			t.Errorf("after the batch %v is still known", found)
		}
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
	if n.batch(t, r, true, "a.", "b."); len(n.told) != 2+2*readahead.First {
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
