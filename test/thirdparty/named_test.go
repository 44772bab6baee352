package thirdparty

import (
	"context"
	"crypto"
	"io"
	"net"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/route53"
	"github.com/coredns/caddy"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/acl"
	pany "github.com/coredns/coredns/plugin/any"
	"github.com/coredns/coredns/plugin/auto"
	"github.com/coredns/coredns/plugin/autopath"
	"github.com/coredns/coredns/plugin/azure"
	"github.com/coredns/coredns/plugin/bufsize"
	"github.com/coredns/coredns/plugin/cache"
	"github.com/coredns/coredns/plugin/cache/freq"
	"github.com/coredns/coredns/plugin/cancel"
	"github.com/coredns/coredns/plugin/chaos"
	"github.com/coredns/coredns/plugin/clouddns"
	"github.com/coredns/coredns/plugin/dns64"
	"github.com/coredns/coredns/plugin/dnssec"
	"github.com/coredns/coredns/plugin/dnstap"
	"github.com/coredns/coredns/plugin/dynupdate"
	"github.com/coredns/coredns/plugin/erratic"
	"github.com/coredns/coredns/plugin/etcd"
	"github.com/coredns/coredns/plugin/file"
	"github.com/coredns/coredns/plugin/forward"
	"github.com/coredns/coredns/plugin/geoip"
	"github.com/coredns/coredns/plugin/grpc"
	external "github.com/coredns/coredns/plugin/k8s_external"
	"github.com/coredns/coredns/plugin/kubernetes"
	"github.com/coredns/coredns/plugin/kubernetes/object"
	"github.com/coredns/coredns/plugin/loadbalance"
	"github.com/coredns/coredns/plugin/local"
	"github.com/coredns/coredns/plugin/loop"
	"github.com/coredns/coredns/plugin/nomad"
	"github.com/coredns/coredns/plugin/nsid"
	pcache "github.com/coredns/coredns/plugin/pkg/cache"
	"github.com/coredns/coredns/plugin/pkg/proxy"
	"github.com/coredns/coredns/plugin/pkg/upstream"
	"github.com/coredns/coredns/plugin/rewrite"
	r53 "github.com/coredns/coredns/plugin/route53"
	"github.com/coredns/coredns/plugin/secondary"
	"github.com/coredns/coredns/plugin/sign"
	"github.com/coredns/coredns/plugin/template"
	"github.com/coredns/coredns/plugin/transfer"
	"github.com/coredns/coredns/plugin/tsig"
	"github.com/coredns/coredns/plugin/whoami"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
	mvccpb "go.etcd.io/etcd/api/v3/mvccpb"
	etcdcv3 "go.etcd.io/etcd/client/v3"
	api "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kcache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// The names of plugins that other people's code uses, as it uses them: literals with the fields by name, variables of
// the functions' types, interfaces of the methods. This compiles, or something of the API has gone. test/api has the
// names of the core and of packages for plugins.
var (
	_                            = cache.Cache{Next: nil, Zones: nil}
	_ func() *cache.Cache        = cache.New
	_ dns.ResponseWriter         = (*cache.ResponseWriter)(nil)
	_                            = cache.ResponseWriter{ResponseWriter: nil, Cache: nil}
	_ func(time.Time) *freq.Freq = freq.New
	_ interface {
		Update(d time.Duration, now time.Time) int
		Hits() int
		Reset(time.Time, int)
	} = (*freq.Freq)(nil)
	_ = forward.Forward{Next: nil, ErrLimitExceeded: nil}
	_ interface {
		SetProxy(*proxy.Proxy)
		SetProxyOptions(proxy.Options)
		SetTapPlugin(*dnstap.Dnstap)
		Len() int
		List() []*proxy.Proxy
		ForceTCP() bool
		PreferUDP() bool
		OnStartup() error
		OnShutdown() error
		plugin.Handler
	} = (*forward.Forward)(nil)
	_ forward.Policy = forward.Policy(nil)
	_                = proxy.Options(forward.Options{})
	_                = []error{forward.ErrNoHealthy, forward.ErrNoForward, forward.ErrCachedClosed}
	_                = grpc.GRPC{Next: nil}
	_ grpc.Policy
	_ grpc.Proxy
	_ = []error{grpc.ErrNoHealthy, grpc.ErrDNSMessageTooLarge}
	_ = rewrite.Rewrite{Next: nil, Rules: []rewrite.Rule{}, RevertPolicy: rewrite.NoRevertPolicy()}
	_ rewrite.Rule
	_ rewrite.Result        = rewrite.RewriteIgnored
	_ rewrite.Result        = rewrite.RewriteDone
	_                       = []string{rewrite.Stop, rewrite.Continue, rewrite.ExactMatch, rewrite.PrefixMatch, rewrite.SuffixMatch, rewrite.SubstringMatch, rewrite.RegexMatch, rewrite.AnswerMatch, rewrite.AutoMatch, rewrite.NameMatch, rewrite.ValueMatch, rewrite.Replace, rewrite.Set, rewrite.Append, rewrite.Unset}
	_ rewrite.ResponseRules = []rewrite.ResponseRule{}
	_                       = rewrite.ResponseReverter{ResponseWriter: nil, ResponseRules: nil}
	_                       = rewrite.NewResponseReverter
	_ rewrite.RevertPolicy  = rewrite.NoRestorePolicy()
	_                       = rewrite.NewRevertPolicy(true, false)
	_ rewrite.UpstreamInt
	_ = dns64.DNS64{Next: nil, Prefix: (*net.IPNet)(nil), TranslateAll: true, AllowIPv4: true, Upstream: nil}
	_ dns64.UpstreamInt
	_                                      = dns64.RequestsTranslatedCount
	_                                      = (*dns64.DNS64).DoDNS64
	_                                      = (*dns64.DNS64).Synthesize
	_                                      = loadbalance.LoadBalance{Next: nil}
	_                                      = loadbalance.LoadBalanceResponseWriter{}
	_                                      = tsig.TSIGServer{Zones: nil, Next: nil}
	_ func(context.Context) (string, bool) = tsig.ValidatedKeyName
	_                                      = geoip.GeoIP{Next: nil}
	_                                      = acl.ACL{Next: nil, Rules: nil}
	_                                      = loop.Loop{Next: nil}
	_                                      = loop.New
	_                                      = pany.Any{Next: nil}
	_                                      = chaos.Chaos{Next: nil, Version: "", Authors: nil}
	_                                      = chaos.Owners
	_                                      = local.Local{Next: nil}
	_                                      = bufsize.Bufsize{Next: nil, Size: 5}
	_                                      = nsid.Nsid{Next: nil, Data: ""}
	_                                      = nsid.ResponseWriter{}
	_                                      = cancel.Cancel{Next: nil}
	_                                      = erratic.Erratic{}
	_                                      = whoami.Whoami{}
	_                                      = file.File{Next: nil, Zones: file.Zones{}, Xfer: (*transfer.Transfer)(nil), ZoneLookupFunc: func(qname string) (zone string, z *file.Zone, ok bool) { return }, TransferInFunc: func(z *file.Zone, t *transfer.Transfer) error { return nil }}
	_ file.ZoneLookupFunc
	_ file.TransferInFunc
	_ = file.Zone{Apex: file.Apex{SOA: nil, NS: nil, SIGSOA: nil, SIGNS: nil}, Expired: true, TransferFrom: nil, ReloadInterval: 0, ReloadByMtime: true, Upstream: upstream.New()}
	_ = (&file.Zone{}).StartupOnce.Do
	_ interface {
		Copy() *file.Zone
		CopyWithoutApex() *file.Zone
		Insert(dns.RR) error
		File() string
		SetFile(string)
		Reload(*transfer.Transfer) error
		OnShutdown() error
		Transfer(serial uint32) (<-chan []dns.RR, error)
		TransferIn(*transfer.Transfer) error
		TransferInWithRecords(t *transfer.Transfer, validate func([]dns.RR) error) error
		Update(shutdown chan bool, t *transfer.Transfer) error
		UpdateWithTransfer(shutdown chan bool, t *transfer.Transfer, f file.TransferInFunc) error
	} = (*file.Zone)(nil)
	_ uint32 = file.MaxSerialIncrement
	_        = []file.Result{file.Success, file.NameError, file.Delegation, file.NoData, file.ServerFailure}
	_        = auto.Auto{Next: nil, Zones: (*auto.Zones)(nil)}
	_ interface {
		Names() []string
		Origins() []string
		Zones(name string) *file.Zone
		Add(zone *file.Zone, name string, t *transfer.Transfer)
		Remove(name string)
	} = (*auto.Zones)(nil)
	_ interface {
		Walk() error
		Notify() error
	} = auto.Auto{}
	_                                                                                               = secondary.Secondary{File: file.File{}}
	_                                                                                               = transfer.Transfer{Transferers: []transfer.Transferer{}, Next: nil}
	_                                                                                               = (*transfer.Transfer).Notify
	_                                                                                               = sign.Sign{}
	_                                                                                               = sign.Pair{Public: (*dns.DNSKEY)(nil), KeyTag: uint16(1), Private: crypto.Signer(nil)}
	_ func(name, next string, ttl uint32, bitmap []uint16) *dns.NSEC                                = sign.NSEC
	_                                                                                               = (*sign.Signer).Sign
	_ func(io.Reader, string, string) (*file.Zone, error)                                           = sign.Parse
	_                                                                                               = dnssec.Dnssec{Next: nil}
	_ func([]string, []*dnssec.DNSKEY, bool, plugin.Handler, *pcache.Cache[[]dns.RR]) dnssec.Dnssec = dnssec.New
	_ interface {
		Sign(state request.Request, now time.Time, server string) *dns.Msg
	} = dnssec.Dnssec{}
	_                                              = dnssec.DNSKEY{K: (*dns.DNSKEY)(nil), D: (*dns.DS)(nil)}
	_ func(string, string) (*dnssec.DNSKEY, error) = dnssec.ParseKeyFile
	_ func(string) (*dnssec.DNSKEY, error)         = dnssec.ParseKeyFromAWSSecretsManager
	_                                              = dnssec.ResponseWriter{}
	_                                              = dnssec.SecretKeyData{Key: "", Private: ""}
	_                                              = template.Handler{Zones: nil, Next: nil, Templates: nil}
	_ template.Upstreamer
	_                       = etcd.Etcd{Next: nil, Zones: nil, PathPrefix: "", Upstream: upstream.New(), Client: (*etcdcv3.Client)(nil), MinLeaseTTL: 1, MaxLeaseTTL: 1}
	_ plugin.ServiceBackend = (*etcd.Etcd)(nil)
	_                       = (&etcd.Etcd{}).TTL
	_                       = func(e *etcd.Etcd, kv *mvccpb.KeyValue) { _ = e.TTL; _ = kv }
	_                       = (&etcd.Etcd{}).OnShutdown
	_                       = r53.Route53{Next: nil}
	_                       = func(ctx context.Context, c *route53.Client, keys map[string][]string) (*r53.Route53, error) {
		return r53.New(ctx, c, keys, time.Second)
	}
	_                                                         = (*r53.Route53).Run
	_                                                         = azure.Azure{Next: nil}
	_                                                         = azure.New
	_                                                         = (*azure.Azure).Run
	_                                                         = clouddns.CloudDNS{Next: nil}
	_                                                         = clouddns.New
	_                                                         = (*clouddns.CloudDNS).Run
	_                                                         = nomad.Nomad{Next: nil, Zone: ""}
	_                                                         = (*nomad.Nomad).Ready
	_                                                         = (*nomad.Nomad).Name
	_                                                         = dynupdate.DynUpdate{Next: nil, Xfer: nil}
	_ transfer.Transferer                                     = (*dynupdate.DynUpdate)(nil)
	_                                                         = kubernetes.Kubernetes{Next: nil, Zones: nil, Upstream: nil, APIServerList: nil, APICertAuth: "", APIClientCert: "", APIClientKey: "", ClientConfig: clientcmd.ClientConfig(nil), APIConn: nil, Namespaces: map[string]struct{}{}}
	_ plugin.ServiceBackend                                   = (*kubernetes.Kubernetes)(nil)
	_ func([]string) *kubernetes.Kubernetes                   = kubernetes.New
	_ func(*caddy.Controller) (*kubernetes.Kubernetes, error) = kubernetes.ParseStanza
	_ kubernetes.Upstreamer
	_                     = []string{kubernetes.DNSSchemaVersion, kubernetes.Svc, kubernetes.Pod, kubernetes.Endpoint, kubernetes.PortProtocol}
	_                     = []kubernetes.ModifiedMode{kubernetes.ModifiedInternal, kubernetes.ModifiedExternal, kubernetes.ModifiedMultiCluster}
	_ external.Externaler = (*kubernetes.Kubernetes)(nil)
	_                     = (*kubernetes.Kubernetes).ExternalReverse
	_                     = (*kubernetes.Kubernetes).InitKubeCache
	_ autopath.AutoPather = (*kubernetes.Kubernetes)(nil)
	_                     = (*kubernetes.Kubernetes).Metadata
	_                     = (*kubernetes.Kubernetes).Ready
	_                     = kubernetes.Kubernetes.ServeDNS
	_                     = kubernetes.Kubernetes.Name
	_ transfer.Transferer = (*kubernetes.Kubernetes)(nil)
	_                     = external.External{Next: nil, Zones: nil}
	_                     = external.New
	_                     = autopath.AutoPath{Next: nil, Zones: nil}
	_ autopath.Func
	_ = object.Service{Version: "", Name: "", Namespace: "", Index: "", ClusterIPs: nil, Type: api.ServiceTypeClusterIP, ExternalName: "", Ports: []api.ServicePort{}, ExternalIPs: nil, Empty: &object.Empty{}}
	_ = (*object.Service).Headless
	_ = object.Endpoints{Version: "", Name: "", Namespace: "", Index: "", IndexIP: nil, Subsets: []object.EndpointSubset{}, Zones: map[string]string{}}
	_ = object.EndpointAddress{IP: "", Hostname: "", NodeName: "", TargetRefName: ""}
	_ = object.EndpointPort{Port: 1, Name: "", Protocol: ""}
	_ = object.Pod{Version: "", PodIP: "", Name: "", Namespace: "", Labels: nil}
	_ = object.Namespace{Version: "", Name: ""}
	_ = object.ServiceImport{Version: "", Name: "", Namespace: "", Index: "", ClusterIPs: nil}
	_ = (*object.ServiceImport).Headless
	_ = object.MultiClusterEndpoints{ClusterId: ""}
	_ = []func(string, string) string{object.ServiceKey, object.EndpointsKey, object.ServiceImportKey, object.MultiClusterEndpointsKey}
	_ = []func(meta.Object) (meta.Object, error){object.ToService, object.ToPod, object.ToNamespace, object.ToServiceImport, object.EndpointSliceToEndpoints, object.EndpointSliceToEndpointsWithZones, object.EndpointSliceToMultiClusterEndpoints}
	_ object.ToFunc
	_ object.ProcessorBuilder                                                                                                                               = func(kcache.Indexer, kcache.ResourceEventHandler) kcache.ProcessFunc { return nil }
	_ func(kcache.ListerWatcher, runtime.Object, kcache.ResourceEventHandler, kcache.Indexers, object.ProcessorBuilder) (kcache.Indexer, kcache.Controller) = object.NewIndexerInformer
	_ func(object.ToFunc, *object.EndpointLatencyRecorder) object.ProcessorBuilder                                                                          = object.DefaultProcessor
	_                                                                                                                                                       = object.EndpointLatencyRecorder{TT: time.Time{}, ServiceFunc: nil, Services: nil}
	_ object.RecordLatencyFunc
	_ = object.DNSProgrammingLatency
	_ = object.DurationSinceFunc
	_ = (*object.Endpoints).CopyWithoutSubsets
)
