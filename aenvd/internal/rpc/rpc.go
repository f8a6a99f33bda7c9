// Package rpc has what the Connect services share.
package rpc

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"

	"aenvd/internal/state"
	"aenvd/internal/streams"
	"aenvd/internal/users"
)

const (
	// KeepaliveHeader asks for a sign of life on streams that are silent for so many seconds.
	KeepaliveHeader  = "Keepalive-Ping-Interval"
	defaultKeepalive = 90 * time.Second
	maxKeepalive     = time.Hour
)

// User is who the request acts as: the name in `Authorization: Basic`, or the default user.
func User(state *state.State, header http.Header) (users.User, error) {
	user, err := state.LookupUser(BasicUser(header.Get("Authorization")))
	if errors.As(err, &users.UnknownError{}) {
		return user, connect.NewError(connect.CodeUnauthenticated, err)
	}
	if err != nil {
		return user, connect.NewError(connect.CodeInternal, err)
	}
	return user, nil
}

// BasicUser is the user name in an Authorization header; empty when it has none. Passwords are not looked at: the access
// token is what lets a client in.
func BasicUser(header string) string {
	scheme, encoded, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "basic") {
		return ""
	}
	decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	if err != nil {
		return ""
	}
	name, _, _ := strings.Cut(string(decoded), ":")
	return name
}

// Keepalive is the time after which a silent stream gives a sign of life.
func Keepalive(header http.Header) time.Duration {
	seconds, err := strconv.Atoi(header.Get(KeepaliveHeader))
	if err != nil || seconds <= 0 {
		return defaultKeepalive
	}
	return min(time.Duration(min(seconds, int(maxKeepalive.Seconds())))*time.Second, maxKeepalive)
}

// ContextError words why a stream ends before its subject does.
func ContextError(ctx context.Context) error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, streams.ErrDropped):
		return connect.NewError(connect.CodeUnavailable, cause)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return connect.NewError(connect.CodeDeadlineExceeded, errors.New("the deadline of the request has passed"))
	default:
		return connect.NewError(connect.CodeCanceled, context.Canceled)
	}
}
