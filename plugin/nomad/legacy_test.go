package nomad

import (
	"testing"

	"github.com/coredns/coredns/plugin/pkg/eventually"

	"github.com/miekg/dns"
)

// After a reload services are answered from what was known before, though no agent answers, and followed on.
func TestInherit(t *testing.T) {
	a, url := newAPI(t)
	old, other, heir, late := serving(t, url), serving(t, url), serving(t, url, url), serving(t, url)
	old.kin, other.kin, heir.kin, late.kin = "a", "b", "a", "a"
	const name = "redis.default.service.nomad."
	want, err := ask(old, name, dns.TypeAAAA)
	if err != nil {
		t.Fatal(err)
	}
	a.mu.Lock()
	a.down = true
	a.mu.Unlock()
	other.inherit() // from nobody
	old.offer()
	other.inherit()
	heir.inherit()
	late.inherit()
	old.catalog.stop()
	old.withdraw()
	if got, err := ask(heir, name, dns.TypeAAAA); got != want || err != nil || !heir.Ready() || heir.catalog.serial() != old.catalog.serial() {
		t.Errorf("the heir: %s, %v, ready %t, serial %d", got, err, heir.Ready(), heir.catalog.serial())
	}
	for _, n := range []*Nomad{other, late} {
		if got, err := ask(n, name, dns.TypeAAAA); err == nil {
			t.Errorf("one that is no heir: %s", got)
		}
	}
	a.mu.Lock()
	a.down = false
	a.mu.Unlock()
	a.change("default/redis", instance{Address: "2001:db8::9", Port: 1})
	eventually.Holds(t, "the change", func() bool {
		got, _ := ask(heir, name, dns.TypeAAAA)
		return got == "NOERROR "+name+" 30 IN AAAA 2001:db8::9"
	})
	if len(offers.all) != 0 {
		t.Error("an offer is left")
	}
}
