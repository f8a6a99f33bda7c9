package machine

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestClockIsOff(t *testing.T) {
	now := time.Now()
	cases := map[time.Duration]bool{
		0: false, 49 * time.Millisecond: false, 51 * time.Millisecond: true, time.Hour: true,
		-499 * time.Millisecond: false, -501 * time.Millisecond: true,
	}
	for behind, want := range cases {
		if got := ClockIsOff(now, now.Add(behind)); got != want {
			t.Errorf("%s behind: %v", behind, got)
		}
	}
}

func TestHostsFor(t *testing.T) {
	got := hostsFor("127.0.0.1 localhost\n10.0.0.1 db\n127.0.1.1 old "+hostsMark+"\n", "new")
	if got != "127.0.0.1 localhost\n10.0.0.1 db\n127.0.1.1 new "+hostsMark+"\n" {
		t.Errorf("got %q", got)
	}
	if again := hostsFor(got, "new"); again != got {
		t.Errorf("not stable: %q", again)
	}
	if fresh := hostsFor("", "n"); !strings.HasPrefix(fresh, "127.0.0.1 localhost\n::1 ") {
		t.Errorf("fresh: %q", fresh)
	}
}

func TestCheckHostname(t *testing.T) {
	for _, name := range []string{"a", "i1234", "my-host", "a.b.c"} {
		if err := CheckHostname(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"", "-a", "a-", "a b", "a\n127.0.0.1 x", strings.Repeat("a", 65), "a..b"} {
		if CheckHostname(name) == nil {
			t.Errorf("%q was accepted", name)
		}
	}
}

func TestMachineIDAndDBus(t *testing.T) {
	root := Root(t.TempDir())
	dbus := filepath.Join(string(root), "/var/lib/dbus")
	if err := os.MkdirAll(dbus, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dbus, "machine-id"), []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	id := "0123456789abcdef0123456789abcdef"
	if err := root.SetMachineID(id); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/etc/machine-id", "/var/lib/dbus/machine-id"} {
		if got := read(t, root, path); got != id+"\n" {
			t.Errorf("%s: %q", path, got)
		}
	}
	if root.SetMachineID("short") == nil {
		t.Error("a short id was accepted")
	}
}

func TestTrustCertificates(t *testing.T) {
	root := Root(t.TempDir())
	bundle := filepath.Join(string(root), trustBundles[0])
	if err := os.MkdirAll(filepath.Dir(bundle), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(bundle, []byte("existing"), 0o644); err != nil {
		t.Fatal(err)
	}
	first, second := certificate(t), certificate(t)
	for _, pemText := range []string{first, second, second} {
		if err := root.TrustCertificates(pemText); err != nil {
			t.Fatal(err)
		}
	}
	got := read(t, root, trustBundles[0])
	if got != "existing\n"+bundleMark+second+bundleEnd {
		t.Errorf("got %q", got)
	}
	if root.TrustCertificates("nothing") == nil {
		t.Error("text without a certificate was accepted")
	}
}

func TestWriteIdentity(t *testing.T) {
	root := Root(t.TempDir())
	if err := root.WriteIdentity("i123", "base"); err != nil {
		t.Fatal(err)
	}
	if got := read(t, root, "/run/e2b/.E2B_SANDBOX_ID"); got != "i123" {
		t.Errorf("got %q", got)
	}
}

func read(t *testing.T, root Root, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(string(root), path))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func certificate(t *testing.T) string {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}
