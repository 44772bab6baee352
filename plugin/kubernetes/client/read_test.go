package client

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/coredns/coredns/plugin/kubernetes/client/lean"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/encoding/protowire"
	api "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	k8sproto "k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

func registryOf(t *testing.T, c any) prometheus.Gatherer {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	if err := reg.Register(c.(prometheus.Collector)); err != nil {
		t.Fatal(err)
	}
	return reg
}

// encode writes obj as an API server does.
func encode(t testing.TB, obj runtime.Object) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := k8sproto.NewSerializer(nil, nil).Encode(obj, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func serviceList(n int) *api.ServiceList {
	remaining := int64(5)
	l := &api.ServiceList{TypeMeta: metav1.TypeMeta{Kind: "ServiceList", APIVersion: "v1"},
		ListMeta: metav1.ListMeta{ResourceVersion: "42", Continue: "token", RemainingItemCount: &remaining}}
	for i := range n {
		l.Items = append(l.Items, api.Service{ObjectMeta: metav1.ObjectMeta{Name: "svc-" + strings.Repeat("x", i%40)}})
	}
	return l
}

// TestProtobufList reads what the API's own serializer wrote, also in small bits.
func TestProtobufList(t *testing.T) {
	for _, n := range []int{0, 1, 200} {
		body := encode(t, serviceList(n))
		for _, r := range []io.Reader{bytes.NewReader(body), iotest.OneByteReader(bytes.NewReader(body))} {
			var all []string
			meta, err := readList(r, names(&all))
			if err != nil || meta.ResourceVersion != "42" || meta.Continue != "token" || len(all) != n {
				t.Fatalf("%d of %d, %+v, %v", len(all), n, meta, err)
			}
			if n == 200 && all[39] != "svc-"+strings.Repeat("x", 39) {
				t.Errorf("item 39 is %s", all[39])
			}
		}
		// A body that is cut off before the list's end is an error. (The envelope's last four bytes say nothing.)
		for cut := 1; cut < len(body)-4; cut += 1 + len(body)/50 {
			var all []string
			if _, err := readList(bytes.NewReader(body[:cut]), names(&all)); err == nil {
				t.Errorf("%d of %d bytes were accepted", cut, len(body))
			}
		}
	}
}

// frame writes an event as an API server does in a protobuf watch.
func frame(t testing.TB, typ string, obj runtime.Object) []byte {
	t.Helper()
	e := metav1.WatchEvent{Type: typ, Object: runtime.RawExtension{Raw: encode(t, obj)}}
	b, err := e.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
}

func TestWatchProtobuf(t *testing.T) {
	var body []byte
	svc := &api.Service{TypeMeta: metav1.TypeMeta{Kind: "Service", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	body = append(body, frame(t, "ADDED", svc)...)
	big := svc.DeepCopy()
	big.Name, big.Annotations = "big", map[string]string{"a": strings.Repeat("x", 100000)}
	body = append(body, frame(t, "MODIFIED", big)...)
	body = append(body, frame(t, "DELETED", svc)...)
	body = append(body, frame(t, "BOOKMARK", svc)...)
	whole := len(body)
	status := apierrors.NewResourceExpired("too old").Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	body = append(body, frame(t, "ERROR", &status)...)

	w := newWatch(io.NopCloser(iotest.HalfReader(bytes.NewReader(body))))
	for i, want := range []EventType{Added, Modified, Deleted, Bookmark} {
		e, err := w.Next()
		if err != nil || e.Type != want || e.Encoding != lean.Protobuf {
			t.Fatalf("event %d: %+v, %v", i, e, err)
		}
		var s lean.Service
		if err := s.Decode(e.Object, e.Encoding); err != nil || len(s.Meta.Name) == 0 {
			t.Errorf("event %d: %q, %v", i, s.Meta.Name, err)
		}
	}
	if _, err := w.Next(); !apierrors.IsResourceExpired(err) {
		t.Errorf("error event: %v", err)
	}
	if _, err := w.Next(); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
	w = newWatch(io.NopCloser(bytes.NewReader(body[:whole-3])))
	var err error
	for err == nil {
		_, err = w.Next()
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cut off: %v", err)
	}
	if _, err := newWatch(io.NopCloser(bytes.NewReader(frame(t, "STRANGE", svc)))).Next(); err == nil {
		t.Error("an unknown type of event was accepted")
	}
}

// TestTooLarge sees that no length in a stream makes us ask for that much memory.
func TestTooLarge(t *testing.T) {
	item := protowire.AppendVarint(protowire.AppendTag(nil, 2, protowire.BytesType), maxObject+1)
	list := append(protowire.AppendVarint(protowire.AppendTag([]byte(lean.Magic), 2, protowire.BytesType), 1<<30), item...)
	if _, err := readList(bytes.NewReader(list), nil); !errors.Is(err, errTooLarge) {
		t.Errorf("list: %v", err)
	}
}

func TestStatus(t *testing.T) {
	st := apierrors.NewUnauthorized("who are you").Status()
	st.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	got, err := decodeStatus(encode(t, &st))
	if err != nil || got.Reason != metav1.StatusReasonUnauthorized || got.Kind != "Status" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := decodeStatus([]byte(`{"kind":"Service"}`)); err == nil {
		t.Error("a service was taken for a status")
	}
	if err := (statusOnly{}).Encode(nil, nil); err == nil {
		t.Error("something was encoded")
	}
}

func FuzzReadList(f *testing.F) {
	f.Add([]byte(jsonList))
	f.Add(encode(f, serviceList(3)))
	f.Add([]byte("k8s\x00\x12\x02\x12\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		n := 0
		_, err := readList(bytes.NewReader(b), func(object []byte, _ lean.Encoding) error {
			if n++; len(object) > len(b) {
				t.Error("an object larger than its list")
			}
			return nil
		})
		if err == nil && n > len(b) {
			t.Errorf("%d objects in %d bytes", n, len(b))
		}
	})
}

func FuzzWatch(f *testing.F) {
	f.Add([]byte(`{"type":"ADDED","object":{"metadata":{"name":"a"}}}`))
	f.Add(frame(f, "ADDED", &api.Service{TypeMeta: metav1.TypeMeta{Kind: "Service", APIVersion: "v1"}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		w := newWatch(io.NopCloser(bytes.NewReader(b)))
		for n := 0; ; n++ {
			e, err := w.Next()
			if err != nil {
				return
			}
			if len(e.Object) > len(b) || n > len(b) {
				t.Fatal("more than there is")
			}
		}
	})
}

func BenchmarkWatch(b *testing.B) {
	one := frame(b, "MODIFIED", &api.Service{TypeMeta: metav1.TypeMeta{Kind: "Service", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	body := bytes.Repeat(one, 1000)
	b.ReportAllocs()
	for b.Loop() {
		w := newWatch(io.NopCloser(bytes.NewReader(body)))
		for {
			if _, err := w.Next(); err != nil {
				break
			}
		}
	}
}
