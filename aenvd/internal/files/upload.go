package files

import (
	"compress/gzip"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"aenvd/internal/httperr"
	"aenvd/internal/users"
)

const (
	// A client that still sends hears of an error only when it is done; so long we listen.
	drainLimit   = 1 << 30
	drainTimeout = 30 * time.Second
	copyBuffer   = 256 << 10
)

// Written is what POST /files says about one file.
type Written struct {
	Name     string            `json:"name"`
	Path     string            `json:"path"`
	Type     string            `json:"type"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

// Upload answers POST /files.
func (t *Transfer) Upload(w http.ResponseWriter, r *http.Request) {
	written, err := t.upload(r)
	if err != nil {
		drain(w, r)
		httperr.Write(w, err)
		return
	}
	httperr.JSON(w, http.StatusOK, written)
}

func drain(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(drainTimeout)) // without it, no limit in time
	_, _ = io.CopyN(io.Discard, r.Body, drainLimit)
}

// upload is one request: who writes what where.
type upload struct {
	transfer *Transfer
	user     users.User
	username string
	metadata map[string]string
	// Paths written so far: one request may not write a file twice.
	seen    map[string]bool
	written []Written
}

func (t *Transfer) upload(r *http.Request) ([]Written, error) {
	query := r.URL.Query()
	if err := authorize(t.state, r.Header, query, opWrite, time.Now()); err != nil {
		return nil, err
	}
	metadata, err := metadataFromHeader(r.Header)
	if err != nil {
		return nil, err
	}
	path, username := query.Get("path"), query.Get("username")
	user, _, err := t.resolve(username, path)
	if err != nil {
		return nil, err
	}
	u := &upload{transfer: t, user: user, username: username, metadata: metadata, seen: map[string]bool{}, written: []Written{}}
	body, size, err := decodedBody(r)
	if err != nil {
		return nil, err
	}
	mediaType, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case err == nil && mediaType == "multipart/form-data" && params["boundary"] != "":
		err = u.multipart(multipart.NewReader(body, params["boundary"]), path)
	case err == nil && mediaType == "application/octet-stream":
		if path == "" {
			return nil, httperr.New(http.StatusBadRequest, "an octet-stream upload needs the query parameter path")
		}
		err = u.write(path, body, size)
	default:
		return nil, httperr.New(http.StatusBadRequest, "Content-Type '%s': multipart/form-data with a boundary or application/octet-stream is needed", r.Header.Get("Content-Type"))
	}
	return u.written, err
}

// decodedBody undoes Content-Encoding. The size is -1 when it is not known.
func decodedBody(r *http.Request) (body io.Reader, size int64, err error) {
	switch encoding := r.Header.Get("Content-Encoding"); encoding {
	case "", "identity":
		return r.Body, r.ContentLength, nil
	case "gzip", "x-gzip":
		reader, err := gzip.NewReader(r.Body)
		if err != nil {
			return nil, 0, httperr.New(http.StatusBadRequest, "the body is not gzip: %v", err)
		}
		return reader, -1, nil
	default:
		return nil, 0, httperr.New(http.StatusUnsupportedMediaType, "Content-Encoding '%s': gzip and identity can be read", encoding)
	}
}

func (u *upload) multipart(reader *multipart.Reader, path string) error {
	for {
		part, err := reader.NextPart()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return httperr.New(http.StatusBadRequest, "the multipart body is broken: %v", err)
		}
		if part.FormName() != "file" {
			continue
		}
		target, err := u.target(part, path)
		if err != nil {
			return err
		}
		if err := u.write(target, part, -1); err != nil {
			return err
		}
	}
}

// target is the path of a part: the query's, which then is for one file, or its file name in full; the library's own
// FileName strips directories.
func (u *upload) target(part *multipart.Part, path string) (string, error) {
	if path != "" {
		if len(u.written) > 0 {
			return "", httperr.New(http.StatusBadRequest, "the query parameter path is for one file, and the body has several")
		}
		return path, nil
	}
	_, params, err := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
	if err != nil || params["filename"] == "" {
		return "", httperr.New(http.StatusBadRequest, "a part has no file name, and there is no query parameter path")
	}
	return params["filename"], nil
}

func (u *upload) write(path string, content io.Reader, size int64) error {
	_, absolute, err := u.transfer.resolve(u.username, path)
	if err != nil {
		return err
	}
	if u.seen[absolute] {
		return httperr.New(http.StatusBadRequest, "the request writes '%s' twice", absolute)
	}
	u.seen[absolute] = true
	if err := u.writeFile(absolute, content, size); err != nil {
		return spaceError(absolute, err)
	}
	entry := Written{Name: filepath.Base(absolute), Path: absolute, Type: "file"}
	if len(u.metadata) > 0 {
		entry.Metadata = u.metadata
	}
	u.written = append(u.written, entry)
	return nil
}

func (u *upload) writeFile(path string, content io.Reader, size int64) (err error) {
	if err := makeDirs(filepath.Dir(path), u.user); err != nil {
		return parentError(path, err)
	}
	existing, statErr := os.Stat(path)
	if statErr == nil && !existing.Mode().IsRegular() {
		return notRegular(path, existing)
	}
	// Before the old content goes: room that is known to be missing.
	if err := checkSpace(filepath.Dir(path), size, existing); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return openError(path, err)
	}
	defer func() {
		if closeErr := file.Close(); err == nil {
			err = closeErr
		}
		if err != nil && statErr != nil {
			os.Remove(path) // half a file that was not there before
		}
	}()
	if os.Getuid() == 0 {
		if err := file.Chown(int(u.user.UID), int(u.user.GID)); err != nil {
			return err
		}
	}
	if err := copyContent(file, content); err != nil {
		return err
	}
	return replaceMetadata(file, u.metadata)
}

func copyContent(file *os.File, content io.Reader) error {
	// The wrapper hides ReadFrom, which would copy in smaller pieces.
	_, err := io.CopyBuffer(struct{ io.Writer }{file}, content, make([]byte, copyBuffer))
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, gzip.ErrChecksum) || errors.Is(err, gzip.ErrHeader) {
		return httperr.New(http.StatusBadRequest, "the body ended early or is damaged: %v", err)
	}
	return err
}

func parentError(path string, err error) error {
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EEXIST) {
		return httperr.New(http.StatusBadRequest, "path '%s': one of the directories above it is a file", path)
	}
	return err
}

// checkSpace refuses what can't fit. What an existing file holds becomes free.
func checkSpace(dir string, size int64, existing os.FileInfo) error {
	var stat unix.Statfs_t
	if size <= 0 || unix.Statfs(dir, &stat) != nil || stat.Blocks == 0 {
		return nil // not known, or a file system that does not count
	}
	free := int64(stat.Bavail) * stat.Bsize
	if os.Getuid() == 0 {
		free = int64(stat.Bfree) * stat.Bsize
	}
	if existing != nil {
		free += existing.Size()
	}
	if size > free {
		return httperr.New(http.StatusInsufficientStorage, "not enough disk space available: %d bytes are needed, %d are free", size, free)
	}
	return nil
}

func spaceError(path string, err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return httperr.New(http.StatusInsufficientStorage, "not enough disk space available to write '%s'", path)
	}
	return err
}
