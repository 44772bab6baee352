package secondary

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/catalog"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"

	"github.com/coredns/caddy"
)

// TestDecide: what catalogs list, what members there are, and what is to be done about it. A catalog is written as
// "A: id=zone>other ...", where other is the catalog that may take the zone over; a member as zone=id@catalog.
func TestDecide(t *testing.T) {
	for _, tc := range []struct {
		what, catalogs, members, corefile, want string
	}{
		{"nothing", "A:", "", "", ""},
		{"new ones", "A: 1=x. 2=y.", "", "", "add x. 1@A, add y. 2@A"},
		{"all as before", "A: 1=x.", "x.=1@A", "", ""},
		{"gone", "A:", "x.=1@A", "", "remove x."},
		{"another id", "A: 2=x.", "x.=1@A", "", "reset x. 2@A"},
		{"one of the Corefile", "A: 1=x.", "", "x.", ""},
		{"one that another catalog has", "A: 1=x. B: 1=x.", "x.=1@A", "", ""},
		{"both list a new one", "A: 1=x. B: 1=x.", "", "", "add x. 1@A"},
		{"given away", "A: 1=x.>B B: 1=x.", "x.=1@A", "", "move x. 1@B"},
		{"given away with another id", "A: 1=x.>B B: 7=x.", "x.=1@A", "", "move x. 7@B"},
		{"given away with an id that changed meanwhile", "A: 3=x.>B B: 7=x.", "x.=1@A", "", "move x. 7@B"},
		{"given away, but not taken", "A: 1=x.>B B:", "x.=1@A", "", ""},
		{"given to another one", "A: 1=x.>C B: 1=x.", "x.=1@A", "", ""},
		{"let go, and listed elsewhere", "A: B: 1=x.", "x.=1@A", "", "remove x., add x. 1@B"},
		{"taken over before", "A: 1=x.>B B: 1=x.", "x.=1@B", "", ""},
		{"a catalog that is not there yet", "A: 1=x.", "x.=1@A y.=1@B", "", "remove y."},
	} {
		logtest.Capture(t)
		r := &roster{replicas: map[string]*replica{}, members: map[string]*member{}}
		var c *consumer
		for _, w := range strings.Fields(tc.catalogs) {
			if name, ok := strings.CutSuffix(w, ":"); ok {
				c = &consumer{listed: &catalog.Catalog{Origin: name}}
				r.catalogs = append(r.catalogs, c)
				continue
			}
			id, rest, _ := strings.Cut(w, "=")
			zone, to, _ := strings.Cut(rest, ">")
			c.listed.Members = append(c.listed.Members, catalog.Member{ID: id, Zone: zone, ChangeOfOwnership: to})
		}
		for _, w := range strings.Fields(tc.members) {
			zone, rest, _ := strings.Cut(w, "=")
			id, from, _ := strings.Cut(rest, "@")
			r.members[zone], r.replicas[zone] = &member{id, from}, newReplica(zone, new(source), nil)
		}
		for _, zone := range strings.Fields(tc.corefile) {
			r.replicas[zone] = newReplica(zone, new(source), nil)
		}
		var got []string
		for _, a := range r.decide() {
			s := []string{"add", "remove", "reset", "move"}[a.kind] + " " + a.zone
			if a.kind != remove {
				s += fmt.Sprintf(" %s@%s", a.id, a.by.listed.Origin)
			}
			got = append(got, s)
		}
		if g := strings.Join(got, ", "); g != tc.want {
			t.Errorf("%s: got %q, want %q", tc.what, g, tc.want)
		}
	}
}

// TestMigrate: a member that one catalog gives to another keeps its data if its id is the same.
func TestMigrate(t *testing.T) {
	for _, tc := range []struct{ id, want string }{{"m", "192.0.2.1"}, {"other", "192.0.2.2"}} {
		out := logtest.Capture(t)
		p := newPrimary(t)
		p.set("one.test.", text(1, slow, "a A 192.0.2.1"))
		p.set("a.example.", fmt.Sprintf(catalogHead, 1)+"m.zones PTR one.test.\n")
		p.set("b.example.", fmt.Sprintf(catalogHead, 1))
		s := begin(t, fmt.Sprintf("secondary a.example b.example {\ntransfer from %s\ncatalog\n}", p.addr))
		becomes(t, s, "a.one.test.", "192.0.2.1")
		p.set("one.test.", text(1, slow, "a A 192.0.2.2")) // the same serial: only who begins anew sees it
		p.set("a.example.", fmt.Sprintf(catalogHead, 2)+"m.zones PTR one.test.\ncoo.m.zones PTR b.example.\n")
		p.set("b.example.", fmt.Sprintf(catalogHead, 2)+tc.id+".zones PTR one.test.\n")
		notify(t, s, "b.example.", "127.0.0.1")
		notify(t, s, "a.example.", "127.0.0.1")
		eventually.Holds(t, "the move", func() bool {
			return strings.Contains(out.String(), "Migrated catalog member zone one.test. from catalog a.example. to b.example.")
		})
		becomes(t, s, "a.one.test.", tc.want)
		notify(t, s, "one.test.", "127.0.0.1")
		out.Await(t, "no SOA serial increase seen")
		if got := ask(t, s, "a.one.test."); got != tc.want {
			t.Errorf("id %s: got %s, want %s", tc.id, got, tc.want)
		}
	}
}

// TestMigrateExpires: a member that another catalog takes over is served no longer than it would have been, if no primary answers any more.
func TestMigrateExpires(t *testing.T) {
	for _, elsewhere := range []bool{false, true} {
		out := logtest.Capture(t)
		p := newPrimary(t)
		q := p
		if elsewhere {
			q = newPrimary(t)
		}
		p.set("one.test.", text(1, "7200 3600 3", "a A 192.0.2.1"))
		p.set("a.example.", fmt.Sprintf(catalogHead, 1)+"m.zones PTR one.test.\n")
		q.set("b.example.", fmt.Sprintf(catalogHead, 1))
		s := begin(t, fmt.Sprintf("secondary a.example {\ntransfer from %s\ncatalog\n}\nsecondary b.example {\ntransfer from %s\ncatalog\n}", p.addr, q.addr))
		becomes(t, s, "a.one.test.", "192.0.2.1")
		p.set("one.test.", "")
		q.set("b.example.", fmt.Sprintf(catalogHead, 2)+"m.zones PTR one.test.\n")
		notify(t, s, "b.example.", "127.0.0.1")
		p.set("a.example.", fmt.Sprintf(catalogHead, 2)+"m.zones PTR one.test.\ncoo.m.zones PTR b.example.\n")
		notify(t, s, "a.example.", "127.0.0.1")
		out.Await(t, "Migrated catalog member zone one.test.")
		becomes(t, s, "a.one.test.", "SERVFAIL")
	}
}

// Members that lie in no zone of the server block are warned of: the first ten by name, the others by their number.
func TestUnreachedMembers(t *testing.T) {
	p := newPrimary(t)
	list := fmt.Sprintf(catalogHead, 1) + "in.zones PTR in.example.\n"
	for i := range 14 {
		list += fmt.Sprintf("m%d.zones PTR m%d.test.\n", i, i)
	}
	p.set("catalog.example.", list)
	for keys, want := range map[string]int{"dns://example.:53 dns://other.:53": 10, "dns://.:53": 0, "": 0} {
		out := logtest.Capture(t)
		c := caddy.NewTestController("dns", "secondary catalog.example {\ntransfer from "+p.addr+"\ncatalog\n}")
		c.ServerBlockKeys = strings.Fields(keys)
		if err := setup(c); err != nil {
			t.Fatal(err)
		}
		s := dnsserver.GetConfig(c).Plugin[0](nil).(Secondary)
		s.roster.start(nil)
		out.Await(t, "Added catalog member zone m9.test.")
		s.roster.stop()
		text := out.String()
		one := fmt.Sprintf("[WARNING] plugin/secondary: Catalog member zone m0.test. from catalog catalog.example. is not served: it lies in no zone of server block %q", keys)
		more := fmt.Sprintf("4 more catalog member zones lie in no zone of server block %q", keys)
		if n := strings.Count(text, "is not served"); n != want || strings.Contains(text, one) != (want > 0) || strings.Contains(text, more) != (want > 0) {
			t.Errorf("%q: %d warnings in\n%s", keys, n, text)
		}
		if strings.Contains(text, "zone in.example. from catalog catalog.example. is not served") {
			t.Errorf("%q: %s", keys, text)
		}
	}
}
