package kubernetes

import "time"

// podMode says which names below "pod" exist.
type podMode uint8

const (
	podsDisabled podMode = iota // none
	podsInsecure                // all that spell an address
	podsVerified                // those of pods that there are
)

var podModes = map[string]podMode{"disabled": podsDisabled, "insecure": podsInsecure, "verified": podsVerified}

// options are the settings that are no exported fields.
type options struct {
	ttl             uint32 // seconds, of all records but the version
	pods            podMode
	podNames        bool // endpoints without a hostname are called as their pod is
	ptrHostnameOnly bool // PTR records lead to services and to endpoints with a hostname, to no others
	ignoreEmpty     bool // services with cluster IPs and without endpoints do not exist
	noEndpoints     bool
	zonal           bool
	multicluster    []string // zones, as in Zones
	namespaceLabels string   // selector
	labels          string   // selector

	qps            float32
	burst          int
	maxInflight    int
	startupTimeout time.Duration
}

var defaults = options{ttl: 5, startupTimeout: 5 * time.Second}
