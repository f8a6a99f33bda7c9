package files

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"aenvd/internal/state"
)

const vectorToken = "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0"

// The values are those that E2B's SDKs compute.
func TestSign(t *testing.T) {
	vectors := map[string]string{
		"user": "v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E",
		"":     "v1_SnvZASdG5vD8p9rpaldX3434NfwgRVsYsvzCBL6oZbc",
		"root": "v1_L6BLpSFZ4erpM7k1y1Z8n/iTxhp2HuTk3ZVsMQd1Pw8",
	}
	for user, want := range vectors {
		if got := Sign("hello.txt", opRead, user, vectorToken, ""); got != want {
			t.Errorf("%q: got %s, want %s", user, got, want)
		}
	}
}

func TestAuthorize(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	signed := func(operation, expiration string) url.Values {
		query := url.Values{"path": {"a b"}, "username": {"user"}, "signature": {Sign("a b", operation, "user", vectorToken, expiration)}}
		if expiration != "" {
			query.Set("signature_expiration", expiration)
		}
		return query
	}
	changed := signed(opRead, "1700000001")
	changed.Set("signature_expiration", "1800000000")
	cases := []struct {
		header string
		query  url.Values
		want   string
	}{
		{vectorToken, url.Values{}, ""},
		{"wrong", signed(opRead, ""), "access token present in header but does not match"},
		{"", url.Values{}, "missing signature query parameter"},
		{"", signed(opRead, ""), ""},
		{"", signed(opWrite, ""), "invalid signature"},
		{"", signed(opRead, "1700000001"), ""},
		{"", signed(opRead, "1700000000"), "signature is already expired"},
		{"", signed(opRead, "-5"), "signature is already expired"},
		{"", signed(opRead, "soon"), "signature is already expired"},
		{"", changed, "invalid signature"},
	}
	token := vectorToken
	guarded, open := state.New(), state.New()
	if err := guarded.Apply(state.InitRequest{AccessToken: &token}, false); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		header := http.Header{}
		if c.header != "" {
			header.Set("X-Access-Token", c.header)
		}
		got := ""
		if err := authorize(guarded, header, c.query, opRead, now); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("header %q, %s: got %q, want %q", c.header, c.query.Encode(), got, c.want)
		}
		if err := authorize(open, header, c.query, opRead, now); err != nil {
			t.Errorf("without a token to check: %v", err)
		}
	}
}

func TestWantsGzip(t *testing.T) {
	cases := map[string][2]bool{
		"": {false, true}, "gzip": {true, true}, "x-gzip": {true, true}, "GZIP;q=0.5": {true, true}, "identity": {false, true},
		"gzip, deflate, br": {false, true}, "gzip, identity": {false, true}, "gzip, identity;q=0.5": {true, true},
		"gzip;q=0": {false, true}, "identity;q=0": {false, false}, "*;q=0": {false, false}, "gzip, *;q=0": {true, true},
		"gzip, deflate, identity;q=0": {true, true}, "br, identity;q=0": {false, false}, "*": {false, true}, "gzip;q=abc": {false, true},
	}
	for header, want := range cases {
		if gzip, ok := wantsGzip(header); gzip != want[0] || ok != want[1] {
			t.Errorf("%q: got %v, %v; want %v", header, gzip, ok, want)
		}
	}
}

func TestMetadataFromHeader(t *testing.T) {
	got, err := metadataFromHeader(http.Header{"X-Metadata-Owner-Name": {"Me"}, "X-Other": {"x"}})
	if err != nil || len(got) != 1 || got["owner-name"] != "Me" {
		t.Errorf("got %v, %v", got, err)
	}
	bad := []http.Header{
		{"X-Metadata-": {"x"}}, {"X-Metadata-A": {"ü"}}, {"X-Metadata-" + strings.Repeat("k", 247): {"x"}}, {"X-Metadata-A": {strings.Repeat("v", 4096)}},
	}
	for _, header := range bad {
		if got, err := metadataFromHeader(header); err == nil {
			t.Errorf("%.40v became %.40v", header, got)
		}
	}
}

func FuzzWantsGzip(f *testing.F) {
	f.Add("gzip;q=0.5, *;q=0")
	f.Fuzz(func(t *testing.T, header string) {
		if gzip, ok := wantsGzip(header); gzip && !ok {
			t.Errorf("%q: gzip, but not acceptable", header)
		}
		for coding, weight := range parseAcceptEncoding(header) {
			if coding == "" || !(weight >= 0 && weight <= 1) {
				t.Errorf("%q: %q has %v", header, coding, weight)
			}
		}
	})
}
