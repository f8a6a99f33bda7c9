package files

import (
	"compress/gzip"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"aenvd/internal/httperr"
	"aenvd/internal/paths"
	"aenvd/internal/state"
	"aenvd/internal/users"
)

// Transfer serves the contents of files.
type Transfer struct{ state *state.State }

// NewTransfer checks access with state.
func NewTransfer(state *state.State) *Transfer { return &Transfer{state} }

// Download answers GET /files.
func (t *Transfer) Download(w http.ResponseWriter, r *http.Request) {
	if err := t.download(w, r); err != nil {
		httperr.Write(w, err)
	}
}

func (t *Transfer) download(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	if err := authorize(t.state, r.Header, query, opRead, time.Now()); err != nil {
		return err
	}
	_, path, err := t.resolve(query.Get("username"), query.Get("path"))
	if err != nil {
		return err
	}
	compress, acceptable := wantsGzip(r.Header.Get("Accept-Encoding"))
	if !acceptable {
		return httperr.New(http.StatusNotAcceptable, "Accept-Encoding '%s' allows neither gzip nor identity", r.Header.Get("Accept-Encoding"))
	}
	file, info, err := openRegular(path)
	if err != nil {
		return err
	}
	defer file.Close()
	header := w.Header()
	header.Set("Content-Disposition", mime.FormatMediaType("inline", map[string]string{"filename": filepath.Base(path)}))
	header.Add("Vary", "Accept-Encoding")
	if info.Size() == 0 {
		return sendUnsized(w, file)
	}
	if compress && r.Header.Get("Range") == "" {
		return sendCompressed(w, r, file, info)
	}
	http.ServeContent(w, r, filepath.Base(path), info.ModTime(), file)
	return nil
}

// resolve finds the user and the absolute path of a request.
func (t *Transfer) resolve(username, path string) (users.User, string, error) {
	user, err := t.state.LookupUser(username)
	if errors.As(err, &users.UnknownError{}) {
		return user, "", httperr.New(http.StatusUnauthorized, "%v", err)
	}
	if err != nil {
		return user, "", err
	}
	_, workdir := t.state.Defaults()
	absolute, err := paths.Resolve(path, user.Home, workdir)
	if err != nil {
		return user, "", httperr.New(http.StatusBadRequest, "%v", err)
	}
	return user, absolute, nil
}

func openRegular(path string) (*os.File, os.FileInfo, error) {
	// Without O_NONBLOCK, opening a FIFO waits for its other end.
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, openError(path, err)
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notRegular(path, info)
	}
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return file, info, nil
}

func openError(path string, err error) error {
	switch {
	case os.IsNotExist(err), errors.Is(err, unix.ENOTDIR):
		return httperr.New(http.StatusNotFound, "path '%s' does not exist", path)
	case os.IsPermission(err):
		return httperr.New(http.StatusForbidden, "path '%s': permission denied", path)
	case errors.Is(err, unix.ENAMETOOLONG), errors.Is(err, unix.ELOOP), errors.Is(err, unix.EISDIR), errors.Is(err, unix.ENXIO):
		return httperr.New(http.StatusBadRequest, "path '%s': %v", path, errors.Unwrap(err))
	}
	return err
}

func notRegular(path string, info os.FileInfo) error {
	if info.IsDir() {
		return httperr.New(http.StatusBadRequest, "path '%s' is a directory", path)
	}
	return httperr.New(http.StatusBadRequest, "path '%s' is not a regular file", path)
}

// sendUnsized sends a file of size 0: one that is empty, with a length for the clients that look at it, or one of those
// in /proc that have content all the same.
func sendUnsized(w http.ResponseWriter, file *os.File) error {
	first := make([]byte, 64<<10)
	n, err := io.ReadFull(file, first)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return err
	}
	w.Header().Set("Content-Type", contentType(file.Name(), first[:n]))
	if err != nil { // that is all, so the server can tell the length
		w.Header().Set("Content-Length", strconv.Itoa(n))
	}
	w.WriteHeader(http.StatusOK)
	if _, writeErr := w.Write(first[:n]); writeErr == nil && err == nil {
		_, _ = io.Copy(w, file) // the answer has begun: an error can only cut it off
	}
	return nil
}

func sendCompressed(w http.ResponseWriter, r *http.Request, file *os.File, info os.FileInfo) error {
	head := make([]byte, 512)
	n, err := io.ReadFull(file, head)
	if err != nil && err != io.ErrUnexpectedEOF {
		return err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	header := w.Header()
	header.Set("Content-Encoding", "gzip")
	header.Set("Content-Type", contentType(file.Name(), head[:n]))
	header.Set("Last-Modified", info.ModTime().UTC().Format(http.TimeFormat))
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	compressor, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	if _, err := io.Copy(compressor, file); err != nil {
		panic(http.ErrAbortHandler) // the client must not take what it has for the whole
	}
	if err := compressor.Close(); err != nil {
		panic(http.ErrAbortHandler)
	}
	return nil
}

func contentType(name string, head []byte) string {
	if byName := mime.TypeByExtension(filepath.Ext(name)); byName != "" {
		return byName
	}
	return http.DetectContentType(head)
}
