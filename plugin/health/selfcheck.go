package health

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// What the self-check finds. An endpoint that answers slowly tells of a process that has not got enough of something.
var (
	HealthDuration prometheus.Histogram = promauto.NewHistogram(prometheus.HistogramOpts{
		Namespace: plugin.Namespace, Subsystem: pluginName, Name: "request_duration_seconds",
		Buckets: plugin.SlimTimeBuckets, NativeHistogramBucketFactor: plugin.NativeHistogramBucketFactor,
		Help: "Histogram of the time (in seconds) each request took.",
	})
	HealthFailures prometheus.Counter = promauto.NewCounter(prometheus.CounterOpts{
		Namespace: plugin.Namespace, Subsystem: pluginName, Name: "request_failures_total",
		Help: "The number of times the health check failed.",
	})
)

// Times of the self-check.
const (
	checkEvery   = time.Second
	checkTimeout = 3 * time.Second
	slow         = time.Second
)

// probeURL is where the endpoint that the Corefile has at configured, and that listens on actual, can be asked.
func probeURL(configured string, actual net.Addr) string {
	host, _, _ := net.SplitHostPort(configured) // setup has seen to it
	if host == "" {
		host = "localhost"
	}
	_, port, _ := net.SplitHostPort(actual.String())
	u := url.URL{Scheme: "http", Host: net.JoinHostPort(host, port), Path: path} // an address may have a zone, which is escaped
	return u.String()
}

// selfCheck asks an endpoint each second. start and stop are called in turn, by one goroutine at a time.
type selfCheck struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
}

func (s *selfCheck) start(target string) {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.done.Go(func() {
		transport := &http.Transport{} // no proxy
		defer transport.CloseIdleConnections()
		client := &http.Client{Transport: transport, Timeout: checkTimeout}
		tick := time.NewTicker(checkEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				check(ctx, client, target)
			}
		}
	})
}

// stop ends the checks, and closes the connection to the endpoint, which need not wait for it then.
func (s *selfCheck) stop() {
	s.cancel()
	s.done.Wait()
}

// check asks once, measures and counts.
func check(ctx context.Context, client *http.Client, target string) {
	begin := time.Now()
	err := get(ctx, client, target)
	took := time.Since(begin)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		HealthFailures.Inc()
		logger.Warningf("Local health request to %q failed: %s", target, err)
		return
	}
	HealthDuration.Observe(took.Seconds())
	if took > slow {
		logger.Warningf("Local health request to %q took more than 1s: %s", target, took)
	}
}

func get(ctx context.Context, client *http.Client, target string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}
