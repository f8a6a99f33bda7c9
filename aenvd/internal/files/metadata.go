package files

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"aenvd/internal/httperr"
)

const (
	metadataHeader = "X-Metadata-"
	metadataPrefix = "user.e2b."
	// Limits of E2B's API: of one name, and of all names with their prefix and values together.
	maxMetadataKey   = 246
	maxMetadataTotal = 4096
)

// readMetadata reads the extended attributes that are ours; nil when there are none, or the file system has none.
func readMetadata(path string) map[string]string {
	names := make([]byte, 4096)
	n, err := unix.Llistxattr(path, names)
	if errors.Is(err, unix.ERANGE) {
		names = make([]byte, 64<<10) // the kernel's limit
		n, err = unix.Llistxattr(path, names)
	}
	if err != nil || n == 0 {
		return nil
	}
	var metadata map[string]string
	for _, name := range strings.Split(string(names[:n]), "\x00") {
		key, ours := strings.CutPrefix(name, metadataPrefix)
		if !ours || key == "" {
			continue
		}
		value := make([]byte, 64<<10)
		size, err := unix.Lgetxattr(path, name, value)
		if err != nil {
			continue // removed meanwhile
		}
		if metadata == nil {
			metadata = map[string]string{}
		}
		metadata[key] = string(bytes.ToValidUTF8(value[:size], []byte("\uFFFD")))
	}
	return metadata
}

// metadataFromHeader collects `X-Metadata-<key>: value`; keys become lower case.
func metadataFromHeader(header http.Header) (map[string]string, error) {
	metadata := map[string]string{}
	total := 0
	for name, values := range header {
		if len(name) < len(metadataHeader) || !strings.EqualFold(name[:len(metadataHeader)], metadataHeader) {
			continue
		}
		key, value := strings.ToLower(name[len(metadataHeader):]), values[0]
		if key == "" || len(key) > maxMetadataKey || !printable(key) {
			return nil, httperr.New(http.StatusBadRequest, "metadata key '%s': 1 to %d printable ASCII characters are allowed", key, maxMetadataKey)
		}
		if !printable(value) {
			return nil, httperr.New(http.StatusBadRequest, "the value of metadata '%s' may only have printable ASCII characters", key)
		}
		metadata[key] = value
		total += len(metadataPrefix) + len(key) + len(value)
	}
	if total > maxMetadataTotal {
		return nil, httperr.New(http.StatusBadRequest, "metadata of %d bytes, %d are allowed", total, maxMetadataTotal)
	}
	return metadata, nil
}

func printable(text string) bool {
	for i := range len(text) {
		if text[i] < 0x20 || text[i] > 0x7e {
			return false
		}
	}
	return true
}

// replaceMetadata makes the set of attributes exactly this one.
func replaceMetadata(file *os.File, metadata map[string]string) error {
	for key := range readMetadata(file.Name()) {
		if _, kept := metadata[key]; !kept {
			if err := unix.Fremovexattr(int(file.Fd()), metadataPrefix+key); err != nil && !errors.Is(err, unix.ENODATA) {
				return fmt.Errorf("remove metadata '%s': %w", key, err)
			}
		}
	}
	for key, value := range metadata {
		err := unix.Fsetxattr(int(file.Fd()), metadataPrefix+key, []byte(value), 0)
		if errors.Is(err, unix.ENOTSUP) {
			return httperr.New(http.StatusBadRequest, "the file system of '%s' cannot store metadata", file.Name())
		}
		if err != nil {
			return fmt.Errorf("set metadata '%s': %w", key, err)
		}
	}
	return nil
}
