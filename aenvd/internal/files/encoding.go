package files

import (
	"strconv"
	"strings"
)

// wantsGzip decides whether an answer is compressed, from Accept-Encoding. ok is false when the client accepts neither
// gzip nor the plain bytes.
//
// Compression is used when gzip is the only coding that the client names, or plain bytes are refused. A longer list
// (`gzip, deflate, br`) is what HTTP clients send by themselves: it says what they can read, and is no reason to spend
// the guest's processor on a file that crosses a virtual wire.
func wantsGzip(header string) (gzip, ok bool) {
	weights := parseAcceptEncoding(header)
	gzipWeight, named := weights["gzip"]
	if !named {
		gzipWeight = weights["*"]
	}
	identity, identityNamed := weights["identity"]
	if !identityNamed {
		star, starNamed := weights["*"]
		identity = 1
		if starNamed && star == 0 {
			identity = 0
		}
	}
	if identity == 0 {
		return gzipWeight > 0, gzipWeight > 0
	}
	if identityNamed && identity >= gzipWeight {
		return false, true
	}
	others := 0
	for coding := range weights {
		if coding != "gzip" && coding != "identity" {
			others++
		}
	}
	return named && gzipWeight > 0 && others == 0, true
}

// parseAcceptEncoding gives the weight of each coding (RFC 9110, 12.5.3). What is malformed counts as absent.
func parseAcceptEncoding(header string) map[string]float64 {
	weights := map[string]float64{}
	for _, item := range strings.Split(header, ",") {
		coding, params, _ := strings.Cut(item, ";")
		coding = strings.ToLower(strings.TrimSpace(coding))
		if coding == "" {
			continue
		}
		weight := 1.0
		if name, value, found := strings.Cut(params, "="); found && strings.EqualFold(strings.TrimSpace(name), "q") {
			parsed, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil || !(parsed >= 0 && parsed <= 1) {
				continue
			}
			weight = parsed
		}
		if coding == "x-gzip" {
			coding = "gzip"
		}
		weights[coding] = weight
	}
	return weights
}
