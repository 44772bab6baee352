// Package azure answers from zones that Azure DNS has, public and private ones.
//
//	Azure DNS ──records.go: the API's record sets as records──▶ mirror.Mirror ──▶ reply
//
// Start at New; setup.go makes the clients, cloud.go says where the API is.
package azure

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

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/dns/armdns"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/privatedns/armprivatedns"
	"github.com/miekg/dns"
)

const pluginName = "azure"

// refresh is how often zones are read.
const refresh = time.Minute

// separator stands between resource group and zone in what a zone is called here; neither can have one.
const separator = "/"

// Azure is the plugin.
type Azure struct {
	Next plugin.Handler
	// Fall says which names that do not exist are passed on.
	Fall fall.F

	mirror.Front
}

// New is an Azure for zones: keys has their names by resource group, and access says "private" for those, as RESOURCE_GROUP/ZONE, that are
// not public. It reads nothing yet. A client that is not needed may be nil.
func New(_ context.Context, public *armdns.RecordSetsClient, private *armprivatedns.RecordSetsClient, keys map[string][]string, access map[string]string) (*Azure, error) {
	h := new(Azure)
	c := mirror.Config{
		Plugin: pluginName, Refresh: refresh,
		Fetch: func(ctx context.Context, z mirror.Hosted, warn mirror.Warn) ([]dns.RR, error) {
			group, zone, _ := strings.Cut(z.ID, separator)
			if access[z.ID] == privateAccess {
				return fetchPrivate(ctx, private, group, zone, warn)
			}
			return fetchPublic(ctx, public, group, zone, warn)
		},
		Next: func() plugin.Handler { return h.Next },
		Fall: func() fall.F { return h.Fall },
	}
	groups := make([]string, 0, len(keys))
	for group := range keys {
		groups = append(groups, group)
	}
	slices.Sort(groups)
	for _, group := range groups {
		for _, zone := range keys[group] {
			c.Hosted = append(c.Hosted, mirror.Hosted{Zone: plugin.Name(zone).Normalize(), ID: group + separator + zone})
		}
	}
	m, err := mirror.New(c)
	if err != nil {
		return nil, err
	}
	h.Set(m)
	return h, nil
}

// Name is the plugin's name.
func (h *Azure) Name() string { return pluginName }

// WireSelf returns h.
func (h *Azure) WireSelf() plugin.Handler { return h }

func fetchPublic(ctx context.Context, client *armdns.RecordSetsClient, group, zone string, warn mirror.Warn) (all []dns.RR, err error) {
	list := pages{}
	for pager := client.NewListAllByDNSZonePager(group, zone, nil); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing record sets: %w", shortly(err))
		}
		if err := list.check(page.Value != nil, page.NextLink); err != nil {
			return nil, err
		}
		for _, s := range page.Value {
			if s != nil && s.Properties != nil {
				all = append(all, records(s.Properties, warn)...)
			}
		}
	}
	return all, nil
}

func fetchPrivate(ctx context.Context, client *armprivatedns.RecordSetsClient, group, zone string, warn mirror.Warn) (all []dns.RR, err error) {
	list := pages{}
	for pager := client.NewListPager(group, zone, nil); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing record sets: %w", shortly(err))
		}
		if err := list.check(page.Value != nil, page.NextLink); err != nil {
			return nil, err
		}
		for _, s := range page.Value {
			if s != nil && s.Properties != nil {
				all = append(all, records(public(s.Properties), warn)...)
			}
		}
	}
	return all, nil
}

var (
	// errNoPage is for what is no page of the API: the library takes an empty body for a list that ends.
	errNoPage = errors.New("listing record sets: the answer has no list")
	// errEndless is for a page that leads to itself, or back.
	errEndless = errors.New("listing record sets: the list does not end")
)

// pages is those of a list: where they lead to.
type pages map[string]bool

// check takes the next page in, whose link leads to the one behind it.
func (p pages) check(hasList bool, link *string) error {
	next := or(link)
	switch {
	case !hasList:
		return errNoPage
	case next != "" && p[next]:
		return errEndless
	}
	p[next] = true
	return nil
}
