// Package clouddns answers from zones that Google Cloud DNS has.
//
//	Cloud DNS ──fetch: the API's record sets as records──▶ mirror.Mirror ──▶ reply
//
// Start at New; setup.go makes the client.
package clouddns

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/file/mirror"
	"github.com/coredns/coredns/plugin/pkg/fall"
	"github.com/coredns/coredns/plugin/pkg/upstream"
	"github.com/coredns/coredns/plugin/pkg/zonefile"

	"github.com/miekg/dns"
	gcp "google.golang.org/api/dns/v1"
)

const pluginName = "clouddns"

// refresh is how often zones are read.
const refresh = time.Minute

// api is what is asked of Cloud DNS.
type api interface {
	// zoneExists is an error if a project has no managed zone of that name.
	zoneExists(ctx context.Context, project, zone string) error
	// sets calls f with each page of a managed zone's record sets.
	sets(ctx context.Context, project, zone string, f func([]*gcp.ResourceRecordSet) error) error
}

// service is the calls of Cloud DNS that are needed. A *gcp.Service in an interface makes the linker keep all that it can do, with
// the JSON of it: 0.7 MB. Functions hide what they belong to.
type service struct {
	zone func(ctx context.Context, project, zone string) error
	page func(ctx context.Context, project, zone, token string) (*gcp.ResourceRecordSetsListResponse, error)
}

func newService(s *gcp.Service) service {
	return service{
		func(ctx context.Context, project, zone string) error {
			_, err := s.ManagedZones.Get(project, zone).Context(ctx).Do()
			return err
		},
		func(ctx context.Context, project, zone, token string) (*gcp.ResourceRecordSetsListResponse, error) {
			call := s.ResourceRecordSets.List(project, zone).Context(ctx)
			if token != "" {
				call.PageToken(token)
			}
			return call.Do()
		},
	}
}

var (
	// errNoPage is for what is no page of the API, which says of what kind it is, if only that.
	errNoPage = errors.New("the answer has no list of record sets")
	// errEndless is for a page that leads to itself, or back.
	errEndless = errors.New("the list of record sets does not end")
)

func (s service) zoneExists(ctx context.Context, project, zone string) error {
	return again(ctx, func() error { return s.zone(ctx, project, zone) })
}

func (s service) sets(ctx context.Context, project, zone string, f func([]*gcp.ResourceRecordSet) error) error {
	seen := map[string]bool{"": true} // tokens
	for token := ""; ; seen[token] = true {
		var page *gcp.ResourceRecordSetsListResponse
		err := again(ctx, func() (err error) {
			page, err = s.page(ctx, project, zone, token)
			return err
		})
		switch {
		case err != nil:
			return err
		case page == nil || page.Rrsets == nil && page.Kind == "":
			return errNoPage
		}
		if token = page.NextPageToken; token != "" && seen[token] {
			return errEndless
		}
		if err := f(page.Rrsets); err != nil || token == "" {
			return err
		}
	}
}

// CloudDNS is the plugin.
type CloudDNS struct {
	Next plugin.Handler
	// Fall says which names that do not exist are passed on.
	Fall fall.F

	mirror.Front
}

// firstTime is how long the existence of one zone may take to be told.
const firstTime = 30 * time.Second

// New is a CloudDNS for managed zones: keys has them by name, each as PROJECT:MANAGED_ZONE. It asks client whether they exist, and
// reads nothing yet. Aliases that lead out of the zones are resolved by the server, whatever up is.
func New(ctx context.Context, client api, keys map[string][]string, up *upstream.Upstream) (*CloudDNS, error) {
	_ = up // the mirror's zones have one of their own, which is the same
	h := new(CloudDNS)
	c := mirror.Config{
		Plugin: pluginName, Refresh: refresh,
		Fetch: func(ctx context.Context, z mirror.Hosted, warn mirror.Warn) ([]dns.RR, error) {
			return fetch(ctx, client, z, warn)
		},
		Next: func() plugin.Handler { return h.Next },
		Fall: func() fall.F { return h.Fall },
	}
	names := make([]string, 0, len(keys))
	for name := range keys {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, id := range keys[name] {
			if err := exists(ctx, client, id); err != nil {
				return nil, fmt.Errorf("zone %s: %w", id, mirror.Brief(err))
			}
			c.Hosted = append(c.Hosted, mirror.Hosted{Zone: plugin.Name(name).Normalize(), ID: id})
		}
	}
	m, err := mirror.New(c)
	if err != nil {
		return nil, err
	}
	h.Set(m)
	return h, nil
}

// exists asks whether there is a managed zone.
func exists(ctx context.Context, client api, id string) error {
	ctx, cancel := context.WithTimeout(ctx, firstTime)
	defer cancel()
	project, zone, _ := strings.Cut(id, ":")
	return client.zoneExists(ctx, project, zone)
}

// Name is the plugin's name.
func (h *CloudDNS) Name() string { return pluginName }

// WireSelf returns h.
func (h *CloudDNS) WireSelf() plugin.Handler { return h }

// fetch reads the record sets of a zone.
func fetch(ctx context.Context, client api, z mirror.Hosted, warn mirror.Warn) (all []dns.RR, err error) {
	project, zone, _ := strings.Cut(z.ID, ":")
	err = client.sets(ctx, project, zone, func(sets []*gcp.ResourceRecordSet) error {
		for _, s := range sets {
			if s != nil {
				all = append(all, records(s, warn)...)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("failed to list resource records: %w", err)
	}
	return all, nil
}

// records is those of one set. Of a set with a routing policy it is the data of the first choice. Data that is none is left out, with
// a warning.
func records(s *gcp.ResourceRecordSet, warn mirror.Warn) (all []dns.RR) {
	data := s.Rrdatas
	if len(data) == 0 {
		if data = policyData(s.RoutingPolicy); len(data) > 0 {
			warn("%s %s has a routing policy: its first choice is served to all", s.Name, s.Type)
		}
	}
	if s.Type == aliasType {
		return aliases(s.Name, data, warn)
	}
	for _, d := range data {
		if d != "" && (s.Type == "CNAME" || s.Type == "PTR") { // of nothing it would make the root
			d = dns.Fqdn(d)
		}
		text := fmt.Sprintf("%s %d IN %s %s", s.Name, s.Ttl, s.Type, d)
		rr, err := zonefile.Line(text)
		if err != nil || rr == nil {
			warn("Failed to process resource record: %s: %v", text, err)
			continue
		}
		all = append(all, rr)
	}
	return all
}

// aliasType is that of sets by which a name, mostly the zone's own, has the addresses of another one.
const aliasType = "ALIAS"

// aliases is the records of such a set, of both families of addresses.
func aliases(owner string, targets []string, warn mirror.Warn) (all []dns.RR) {
	for _, target := range targets {
		for _, typ := range []uint16{dns.TypeA, dns.TypeAAAA} {
			rr, err := mirror.Alias(dns.Fqdn(owner), typ, dns.Fqdn(target))
			if err != nil {
				warn("Failed to process resource record: %s %s %s: %v", owner, aliasType, target, err)
				break
			}
			all = append(all, rr)
		}
	}
	return all
}

// policyData is the data of a routing policy's first choice. Of data with a backup that is the primary's.
func policyData(p *gcp.RRSetRoutingPolicy) []string {
	switch {
	case p == nil:
	case p.Wrr != nil:
		return weightedData(p.Wrr.Items)
	case p.Geo != nil:
		return geoData(p.Geo)
	case p.PrimaryBackup != nil:
		if data := choice(nil, p.PrimaryBackup.PrimaryTargets); len(data) > 0 {
			return data
		}
		return geoData(p.PrimaryBackup.BackupGeoTargets)
	}
	return nil
}

// weightedData is that of the first choice that has a weight: who sets none has taken it out of use. If none has any, it is the first.
func weightedData(items []*gcp.RRSetRoutingPolicyWrrPolicyWrrPolicyItem) []string {
	var first *gcp.RRSetRoutingPolicyWrrPolicyWrrPolicyItem
	for _, i := range items {
		if first == nil || i != nil && first.Weight == 0 && i.Weight > 0 {
			first = i
		}
	}
	if first == nil {
		return nil
	}
	return choice(first.Rrdatas, first.HealthCheckedTargets)
}

func geoData(p *gcp.RRSetRoutingPolicyGeoPolicy) []string {
	if p != nil && len(p.Items) > 0 && p.Items[0] != nil {
		return choice(p.Items[0].Rrdatas, p.Items[0].HealthCheckedTargets)
	}
	return nil
}

// choice is data with the targets beside it, which Cloud DNS leaves out while they are not healthy. We cannot ask how they are.
func choice(data []string, targets *gcp.RRSetRoutingPolicyHealthCheckTargets) []string {
	if targets == nil {
		return data
	}
	for _, b := range targets.InternalLoadBalancers {
		if b != nil {
			data = append(data, b.IpAddress)
		}
	}
	return append(data, targets.ExternalEndpoints...)
}
