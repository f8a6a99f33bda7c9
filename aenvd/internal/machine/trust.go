package machine

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"strings"
)

const (
	// Our certificates by themselves: what update-ca-certificates picks up when it runs in the sandbox.
	trustSource = "/usr/local/share/ca-certificates/aenv.crt"
	bundleMark  = "# aenv: certificates of the host\n"
	bundleEnd   = "# aenv: end\n"
)

// trustBundles are the files that TLS libraries of the common distributions read.
var trustBundles = []string{
	"/etc/ssl/certs/ca-certificates.crt", // Debian, Alpine, Arch
	"/etc/pki/tls/certs/ca-bundle.crt",   // Fedora and its relatives
	"/etc/ssl/ca-bundle.pem",             // SUSE
}

// TrustCertificates adds PEM certificates to the system's trusted ones, in place of those of an earlier call.
func (r Root) TrustCertificates(bundle string) error {
	if err := checkCertificates(bundle); err != nil {
		return err
	}
	if err := r.replace(trustSource, bundle, 0o644); err != nil {
		return err
	}
	found := false
	for _, path := range trustBundles {
		content, err := os.ReadFile(r.path(path))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return err
		}
		found = true
		// Through a symbolic link, which Fedora has here: the file it names is the one that is read.
		if err := os.WriteFile(r.path(path), []byte(withBundle(string(content), bundle)), 0o644); err != nil {
			return err
		}
	}
	if !found {
		return r.replace(trustBundles[0], withBundle("", bundle), 0o644)
	}
	return nil
}

func checkCertificates(bundle string) error {
	rest := []byte(bundle)
	count := 0
	for {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		if block == nil {
			break
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fmt.Errorf("caBundle: certificate %d: %w", count+1, err)
		}
		count++
	}
	if count == 0 {
		return fmt.Errorf("caBundle: no PEM certificate in it")
	}
	return nil
}

func withBundle(content, bundle string) string {
	before, rest, found := strings.Cut(content, bundleMark)
	if found {
		_, after, _ := strings.Cut(rest, bundleEnd)
		content = before + after
	}
	if content != "" && !strings.HasSuffix(content, "\n") {
		content += "\n"
	}
	return content + bundleMark + strings.TrimRight(bundle, "\n") + "\n" + bundleEnd
}
