package endpoint

import (
	"crypto/tls"
	"io"
	"net/http"
	"time"
)

// getTLS is what a new TLS connection gets for addr.
func getTLS(addr string) string {
	client := http.Client{Timeout: 3 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the certificate is made for the test
	}}
	resp, err := client.Get("https://" + addr + "/")
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return string(body)
}
