// Package azure answers from zones that Azure DNS has, public and private ones.
//
//	Azure DNS ──records.go: the API's record sets as records──▶ mirror.Mirror ──▶ reply
//
// Start at New; setup.go makes the clients, cloud.go says where the API is.
package azure

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/file/mirror"
	"github.com/coredns/coredns/plugin/pkg/fall"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/dns/armdns"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/privatedns/armprivatedns"
	"github.com/miekg/dns"
)

const pluginName = "azure"

var logger = log.NewWithPlugin(pluginName)

// refresh is how often zones are read.
const refresh = time.Minute

// separator stands between resource group and zone in what a zone is called here; neither can have one.
const separator = "/"

// Azure is the plugin.
type Azure struct {
	Next plugin.Handler
	// Fall says which names that do not exist are passed on.
	Fall fall.F

	mirror *mirror.Mirror
}

// New is an Azure for zones: keys has their names by resource group, and access says "private" for those, as RESOURCE_GROUP/ZONE, that are
// not public. It reads nothing yet. A client that is not needed may be nil.
func New(_ context.Context, public *armdns.RecordSetsClient, private *armprivatedns.RecordSetsClient, keys map[string][]string, access map[string]string) (*Azure, error) {
	h := new(Azure)
	c := mirror.Config{
		Plugin: pluginName, Refresh: refresh,
		Fetch: func(ctx context.Context, z mirror.Hosted) ([]dns.RR, error) {
			group, zone, _ := strings.Cut(z.ID, separator)
			if access[z.ID] == privateAccess {
				return fetchPrivate(ctx, private, group, zone)
			}
			return fetchPublic(ctx, public, group, zone)
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
	var err error
	if h.mirror, err = mirror.New(c); err != nil {
		return nil, err
	}
	return h, nil
}

// Run reads all zones, and goes on doing so until ctx ends. An error is one of the first time.
func (h *Azure) Run(ctx context.Context) error { return h.mirror.Run(ctx) }

// Name is the plugin's name.
func (h *Azure) Name() string { return pluginName }

// Ready reports whether all zones have been read. It implements ready.Readiness.
func (h *Azure) Ready() bool { return h.mirror.Ready() }

// ServeDNS answers for names in the zones, and passes other queries on.
func (h *Azure) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	return h.mirror.ServeDNS(ctx, w, r)
}

// ServeWire does the same.
func (h *Azure) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	return h.mirror.ServeWire(ctx, w, q)
}

// WireSelf returns h.
func (h *Azure) WireSelf() plugin.Handler { return h }

// Transfer implements transfer.Transferer.
func (h *Azure) Transfer(zone string, serial uint32) (<-chan []dns.RR, error) {
	return h.mirror.Transfer(zone, serial)
}

// TransferSerials implements transfer.Changing.
func (h *Azure) TransferSerials() map[string]uint32 { return h.mirror.TransferSerials() }

func fetchPublic(ctx context.Context, client *armdns.RecordSetsClient, group, zone string) (all []dns.RR, err error) {
	for pager := client.NewListAllByDNSZonePager(group, zone, nil); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing record sets: %w", err)
		}
		for _, s := range page.Value {
			if s != nil && s.Properties != nil {
				all = append(all, records(s.Properties)...)
			}
		}
	}
	return all, nil
}

func fetchPrivate(ctx context.Context, client *armprivatedns.RecordSetsClient, group, zone string) (all []dns.RR, err error) {
	for pager := client.NewListPager(group, zone, nil); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing record sets: %w", err)
		}
		for _, s := range page.Value {
			if s != nil && s.Properties != nil {
				all = append(all, records(public(s.Properties))...)
			}
		}
	}
	return all, nil
}
