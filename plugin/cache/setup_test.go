package cache

import (
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
)

func TestSetup(t *testing.T) {
	for _, tc := range []struct {
		input, want string
		check       func(c *Cache) bool
	}{
		{"cache", "", func(c *Cache) bool {
			return c.success.max == 3600 && c.denial.max == 1800 && c.success.capacity == 10000
		}},
		{"cache 30 example.org", "", func(c *Cache) bool {
			return c.success.max == 30 && c.denial.max == 30 && c.Zones[0] == "example.org."
		}},
		{"cache {\nsuccess 10 20 3\ndenial 11 21\n}", "", func(c *Cache) bool {
			return c.success.capacity == 10 && c.success.max == 20 && c.success.min == 3 && c.denial.capacity == 11 && c.denial.max == 21 && c.denial.min == 5
		}},
		{"cache 30 {\nsuccess 0\ndenial -1\nserve_stale\n}", "", func(c *Cache) bool { // as many as are kept at least; the rest holds
			c.prepare()
			return c.positive.capacity == 1024 && c.negative.capacity == 1024 && c.success.max == 30 && c.denial.max == 30 && c.stale == time.Hour
		}},
		{"cache {\nprefetch 3 2m 20%\n}", "", func(c *Cache) bool { return c.prefetch == 3 && c.duration == 2*time.Minute && c.percentage == 20 }},
		{"cache {\nserve_stale\n}", "", func(c *Cache) bool { return c.stale == time.Hour && !c.verify }},
		{"cache {\nserve_stale 2h Verify 3s 4s 5s\n}", "", func(c *Cache) bool {
			return c.stale == 2*time.Hour && c.verify && c.verifyTimeout == 3*time.Second && c.staleTTL == 4 && c.failureRecheck == 5*time.Second
		}},
		{"cache {\nserve_stale 2h immediate 4s 5s\n}", "", func(c *Cache) bool { return !c.verify && c.staleTTL == 4 && c.failureRecheck == 5*time.Second }},
		{"cache {\nserve_stale_policy prefer_positive\nserve_stale\n}", "", func(c *Cache) bool { return c.preferPositive }},
		{"cache {\nservfail 0\n}", "", func(c *Cache) bool { return c.servfail == 0 }},
		{"cache {\ndisable success example.org\ndisable success example.net\ndisable denial\n}", "", func(c *Cache) bool { return len(c.success.disabled) == 2 && len(c.denial.disabled) == 1 }},
		{"cache {\nkeepttl\nignore_soa_minimum\n}", "", func(c *Cache) bool { return c.keepTTL && c.ignoreMinimum }},
		{"cache {\necs strip\n}", "", func(c *Cache) bool { return c.stripECS }},
		{"cache {\nmemory 16M\n}", "", func(c *Cache) bool { return c.memory == 16<<20 }},
		{"cache {\nfailures\n}", "", func(c *Cache) bool { return c.failures }},
		{"cache {\nserve_stale rfc8767\n}", "", func(c *Cache) bool {
			return c.stale == 24*time.Hour && c.verify && c.verifyTimeout == 1800*time.Millisecond && c.staleTTL == 30 && c.failureRecheck == 30*time.Second && c.staleEDE
		}},
		{"cache {\nserve_stale 72h rfc8767\n}", "", func(c *Cache) bool { return c.stale == 72*time.Hour && c.verify && c.staleEDE }},

		{"cache {\nserve_stale 1h verify rfc8767\n}", "Wrong argument count", nil},
		{"cache {\nserve_stale x rfc8767\n}", "time: invalid duration", nil},
		{"cache {\necs\n}", "Wrong argument count", nil},
		{"cache {\necs keep\n}", "invalid value for ecs: keep: must be strip", nil},
		{"cache {\nmemory\n}", "Wrong argument count", nil},
		{"cache {\nmemory 64X\n}", `memory: invalid size "64X"`, nil},
		{"cache {\nmemory 64K\n}", "memory must be at least 1M: 64K", nil},
		{"cache 30 example.org a..b", `invalid zone "a..b"`, nil},
		{"cache 0", "cache TTL can not be zero or negative: 0", nil},
		{"cache 4294967295", "cache TTL exceeds the DNS TTL range: 4294967295", nil},
		{"cache -1 example.org", "cache TTL can not be zero or negative: -1", nil},
		{"cache {\nsuccess\n}", "Wrong argument count or unexpected line ending after 'success'", nil},
		{"cache {\nsuccess x\n}", "strconv.Atoi", nil},
		{"cache {\ndenial 1 0\n}", "cache TTL can not be zero or negative: 0", nil},
		{"cache {\ndenial 1 1 -1\n}", "cache min TTL can not be negative: -1", nil},
		{"cache {\nprefetch -1\n}", "prefetch amount should be positive: -1", nil},
		{"cache {\nprefetch 1 1m 20c\n}", "last character of percentage should be `%`, but is: 'c'", nil},
		{"cache {\nprefetch 1 1m 5%\n}", "percentage should fall in range [10, 90]: 5", nil},
		{"cache {\nprefetch 0 blurp\n}", "time: invalid duration", nil},
		{"cache {\nserve_stale -1s\n}", "invalid negative duration for serve_stale", nil},
		{"cache {\nserve_stale 1h foo\n}", "invalid value for serve_stale refresh mode: foo", nil},
		{"cache {\nserve_stale 1h verify x\n}", "invalid serve_stale verify timeout", nil},
		{"cache {\nserve_stale 1h verify -1s\n}", "invalid negative timeout for serve_stale verify", nil},
		{"cache {\nserve_stale 1h immediate 1500ms\n}", "serve_stale response TTL must be a whole number of seconds", nil},
		{"cache {\nserve_stale 1h immediate 700000h\n}", "serve_stale response TTL exceeds the DNS TTL range", nil},
		{"cache {\nserve_stale 1h immediate 1s 6m\n}", "serve_stale failure recheck cannot exceed 5 minutes", nil},
		{"cache {\nserve_stale 1h immediate 1s 1s 1s\n}", "Wrong argument count", nil},
		{"cache {\nserve_stale_policy prefer_positive\n}", "serve_stale_policy requires serve_stale", nil},
		{"cache {\nserve_stale\nserve_stale_policy foo\n}", "invalid serve_stale_policy: foo", nil},
		{"cache {\nserve_stale\nserve_stale_policy prefer_positive\nserve_stale_policy prefer_positive\n}", "serve_stale_policy can only be specified once", nil},
		{"cache {\nservfail -1s\n}", "invalid negative ttl for servfail", nil},
		{"cache {\nservfail 6m\n}", "caching SERVFAIL responses over 5 minutes is not permitted", nil},
		{"cache {\ndisable\n}", "Wrong argument count", nil},
		{"cache {\ndisable foo\n}", `cache type for disable must be "success" or "denial"`, nil},
		{"cache {\ndisable success a..b\n}", "invalid disabled zone: a..b", nil},
		{"cache {\nkeepttl now\n}", "Wrong argument count", nil},
		{"cache {\npositive 15\n}", "Testfile:2 - Error during parsing: Wrong argument count or unexpected line ending after 'positive'", nil},
		{"cache\ncache", "this plugin can only be used once per Server Block", nil},
	} {
		c := caddy.NewTestController("dns", tc.input)
		err := setup(c)
		switch {
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%q: got %v, want %s", tc.input, err, tc.want)
		case tc.want == "" && err != nil:
			t.Errorf("%q: %v", tc.input, err)
		case tc.want == "":
			if ca := dnsserver.GetConfig(c).Plugin[0](nil).(*Cache); !tc.check(ca) {
				t.Errorf("%q: %+v", tc.input, ca.settings)
			}
		}
	}
}

func TestReadmeSyntax(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("%v\n%s\nis not\n%s", err, got, directive.Doc().Syntax)
	}
}
