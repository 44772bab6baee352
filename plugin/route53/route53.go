// Package route53 answers from zones that AWS Route 53 has.
//
//	Route 53 ──records.go: the API's record sets as records──▶ mirror.Mirror ──▶ reply
//
// Start at New; setup.go makes the client.
package route53

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/file/mirror"
	"github.com/coredns/coredns/plugin/pkg/fall"
	"github.com/coredns/coredns/plugin/pkg/log"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/route53"
	"github.com/miekg/dns"
)

const pluginName = "route53"

var logger = log.NewWithPlugin(pluginName)

// api is what is asked of Route 53; *route53.Client is one.
type api interface {
	ListHostedZonesByName(ctx context.Context, in *route53.ListHostedZonesByNameInput, opts ...func(*route53.Options)) (*route53.ListHostedZonesByNameOutput, error)
	ListResourceRecordSets(ctx context.Context, in *route53.ListResourceRecordSetsInput, opts ...func(*route53.Options)) (*route53.ListResourceRecordSetsOutput, error)
}

// calls are those of a *route53.Client that are needed. A client in an interface makes the linker keep all that it can do, which
// is seventy calls with their XML: 1.9 MB. Functions hide what they belong to.
type calls struct {
	zones func(context.Context, *route53.ListHostedZonesByNameInput, ...func(*route53.Options)) (*route53.ListHostedZonesByNameOutput, error)
	sets  func(context.Context, *route53.ListResourceRecordSetsInput, ...func(*route53.Options)) (*route53.ListResourceRecordSetsOutput, error)
}

func (c calls) ListHostedZonesByName(ctx context.Context, in *route53.ListHostedZonesByNameInput, opts ...func(*route53.Options)) (*route53.ListHostedZonesByNameOutput, error) {
	return c.zones(ctx, in, opts...)
}

func (c calls) ListResourceRecordSets(ctx context.Context, in *route53.ListResourceRecordSetsInput, opts ...func(*route53.Options)) (*route53.ListResourceRecordSetsOutput, error) {
	return c.sets(ctx, in, opts...)
}

// Route53 is the plugin.
type Route53 struct {
	Next plugin.Handler
	// Fall says which names that do not exist are passed on.
	Fall fall.F

	mirror.Front
}

// firstTime is how long the existence of one zone may take to be told.
const firstTime = 30 * time.Second

// New is a Route53 for hosted zones: keys has their ids by name. It asks client whether they exist, and reads nothing yet. refresh is
// how often Run reads them.
func New(ctx context.Context, client api, keys map[string][]string, refresh time.Duration) (*Route53, error) {
	r := new(Route53)
	c := mirror.Config{
		Plugin: pluginName, Refresh: refresh,
		Fetch: func(ctx context.Context, z mirror.Hosted, warn mirror.Warn) ([]dns.RR, error) {
			return fetch(ctx, client, z, warn)
		},
		Next: func() plugin.Handler { return r.Next },
		Fall: func() fall.F { return r.Fall },
	}
	names := make([]string, 0, len(keys))
	for name := range keys {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, id := range keys[name] {
			if err := exists(ctx, client, name, id); err != nil {
				return nil, mirror.Brief(err)
			}
			c.Hosted = append(c.Hosted, mirror.Hosted{Zone: plugin.Name(name).Normalize(), ID: id})
		}
	}
	m, err := mirror.New(c)
	if err != nil {
		return nil, err
	}
	r.Set(m)
	return r, nil
}

// exists asks whether there is a hosted zone.
func exists(ctx context.Context, client api, name, id string) error {
	ctx, cancel := context.WithTimeout(ctx, firstTime)
	defer cancel()
	_, err := client.ListHostedZonesByName(ctx, &route53.ListHostedZonesByNameInput{DNSName: aws.String(name), HostedZoneId: aws.String(id)})
	return err
}

// Name is the plugin's name.
func (r *Route53) Name() string { return pluginName }

// WireSelf returns r.
func (r *Route53) WireSelf() plugin.Handler { return r }

// pages is how many pages a zone may have: one has a thousand record sets, a zone ten thousand by default.
const pages = 10000

var (
	errEndless = errors.New("the list of record sets does not end")
	// errNoPage is for what is no page of the API: the SDK takes an empty body, or a page for people, for a list that ends.
	errNoPage = errors.New("the answer has no list of record sets")
)

// fetch reads the record sets of a zone.
func fetch(ctx context.Context, client api, z mirror.Hosted, warn mirror.Warn) ([]dns.RR, error) {
	in := &route53.ListResourceRecordSetsInput{HostedZoneId: aws.String(z.ID), MaxItems: aws.Int32(1000)}
	all := listing{id: z.ID, warn: warn}
	seen := map[[3]string]bool{} // where pages begin
	for range pages {
		out, err := client.ListResourceRecordSets(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("failed to list resource records for %s: %w", z.Zone, err)
		}
		if out.ResourceRecordSets == nil {
			return nil, errNoPage
		}
		all.add(out.ResourceRecordSets)
		if !out.IsTruncated {
			return all.all(), nil
		}
		next := [...]string{aws.ToString(out.NextRecordName), string(out.NextRecordType), aws.ToString(out.NextRecordIdentifier)}
		if next == [3]string{} || seen[next] {
			return nil, errEndless // the page leads to itself, or back
		}
		seen[next] = true
		in.StartRecordName, in.StartRecordType, in.StartRecordIdentifier = out.NextRecordName, out.NextRecordType, out.NextRecordIdentifier
	}
	return nil, errEndless
}
