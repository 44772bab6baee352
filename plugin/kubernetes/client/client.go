// Package client asks a Kubernetes API for what DNS needs of it.
//
//	Config ──New──▶ Client ──List──▶ one object after the other, page by page
//	                       ──Watch─▶ Watch.Next: one event after the other
//
// Answers are read as a stream: no list and no object exists as a whole in memory. What comes
// out are the bytes of one object at a time, which package lean reads. Both protobuf, which is
// asked for, and JSON, which some API servers answer with, are understood.
//
// A Client may be used by any number of goroutines, a Watch by one at a time. The package
// does not retry, resume or keep anything: that is for package store. Start at Client.List.
package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Client sends requests to one API server.
type Client struct {
	access atomic.Pointer[access]
	host   string

	config      Config     // what it was made of
	authorities string     // file; "" without one
	renewing    sync.Mutex // held by who stores another access
}

// Resource is a kind of objects.
type Resource struct {
	Group, Version string // the group is empty for the core API
	Name           string // in the plural, as in paths and RBAC rules
}

// The resources that DNS is made of.
var (
	Services       = Resource{"", "v1", "services"}
	Namespaces     = Resource{"", "v1", "namespaces"}
	Pods           = Resource{"", "v1", "pods"}
	EndpointSlices = Resource{"discovery.k8s.io", "v1", "endpointslices"}
	ServiceImports = Resource{"multicluster.x-k8s.io", "v1alpha1", "serviceimports"}
)

// Path returns the path of the resource in all namespaces.
func (r Resource) Path() string {
	if r.Group == "" {
		return "/api/" + r.Version + "/" + r.Name
	}
	return "/apis/" + r.Group + "/" + r.Version + "/" + r.Name
}

// String returns the resource as RBAC rules and error texts name it.
func (r Resource) String() string {
	if r.Group == "" {
		return r.Name
	}
	return r.Name + "." + r.Group
}

// Options select what is listed or watched. Empty ones are not sent.
type Options struct {
	Labels, Fields string // selectors
	// Version is the resource version to start at.
	Version string
	// Limit and Continue ask for a list's pages.
	Limit    int64
	Continue string
	// Initial asks a watch to begin with an ADDED event for all there is.
	Initial bool
	// Timeout is after how long the server is to end a watch, in whole seconds.
	Timeout time.Duration
}

// New makes a client. It reads files but sends nothing.
func New(c Config) (*Client, error) {
	routeLog()
	first, authorities, err := c.access()
	if err != nil {
		return nil, err
	}
	cl := &Client{host: first.rest.Get().URL().Host, config: c, authorities: authorities}
	cl.access.Store(first)
	return cl, nil
}

// Host returns the host and port that requests go to.
func (c *Client) Host() string { return c.host }

// URL returns what the URLs of all requests begin with.
func (c *Client) URL() string { return c.access.Load().rest.Get().URL().String() }

// List asks for one page of r and calls each with one object after the other. The bytes
// are good until each returns; an error of each ends the list and is returned.
//
// The metadata says where to go on. Errors are those of k8s.io/apimachinery/pkg/api/errors
// if the server refused, else of the connection or of a body that could not be read.
func (c *Client) List(ctx context.Context, r Resource, o Options, each Each) (meta ListMeta, err error) {
	defer func(start time.Time) { observe(http.MethodGet, c.host, time.Since(start)) }(time.Now())
	body, err := c.stream(ctx, func(api *rest.RESTClient) *rest.Request {
		req := get(api, r, o)
		if o.Limit > 0 {
			req.Param("limit", strconv.FormatInt(o.Limit, 10))
		}
		if o.Continue != "" {
			req.Param("continue", o.Continue)
		}
		return req
	})
	if err != nil {
		return meta, err
	}
	defer body.Close()
	meta, err = readList(body, each)
	if err != nil {
		return meta, fmt.Errorf("list of %s: %w", r, err)
	}
	return meta, nil
}

// Watch begins a watch of r, which asks for bookmarks. It lives until it is closed, ctx
// ends or the server ends it. Errors are as with List.
func (c *Client) Watch(ctx context.Context, r Resource, o Options) (*Watch, error) {
	body, err := c.stream(ctx, func(api *rest.RESTClient) *rest.Request {
		req := get(api, r, o).Param("watch", "true").Param("allowWatchBookmarks", "true")
		if o.Initial {
			req.Param("sendInitialEvents", "true").Param("resourceVersionMatch", string(metav1.ResourceVersionMatchNotOlderThan))
		}
		if o.Timeout > 0 {
			req.Param("timeoutSeconds", strconv.Itoa(int(o.Timeout/time.Second)))
		}
		return req
	})
	if err != nil {
		return nil, err
	}
	return newWatch(body), nil
}

func get(api *rest.RESTClient, r Resource, o Options) *rest.Request {
	// A server that says "not now" is asked again by who knows how long that may take, and tells of it. Else the
	// request would sleep as long as the server says, ten times, without a word.
	req := api.Get().AbsPath(r.Path()).MaxRetries(0)
	for _, p := range []struct{ name, value string }{
		{"labelSelector", o.Labels}, {"fieldSelector", o.Fields}, {"resourceVersion", o.Version},
	} {
		if p.value != "" {
			req.Param(p.name, p.value)
		}
	}
	return req
}

// drain reads what is left of a body, so that its connection can be used again.
func drain(r io.Reader) { io.Copy(io.Discard, io.LimitReader(r, 4096)) }
