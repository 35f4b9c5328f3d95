// Package web is the controller's HTTP server: it listens, knows who may see what, and hands requests on to handlers
// that others mount.
//
// There are two tokens: one for looking, one for changing something too. They are made at the first start and kept in a
// file of the state folder with the address, so that a URL is good over restarts. A request shows a token as
// "Authorization: Bearer TOKEN", as a cookie, or as the parameter token of its URL; the last one is answered with the
// cookie and a redirect to the same place without the token, so that it does not stay in a browser's history.
//
//	request -> Host -> Origin -> token -> handler
//	            403      403      401
//
// A request must name its host by an address, as localhost, or as this machine is called: another name may have been
// made to point here by a web site that a browser has open (DNS rebinding). Requests from other web sites are refused.
// Without a token nothing is shown but what is mounted as Open, not even which paths there are.
package web
