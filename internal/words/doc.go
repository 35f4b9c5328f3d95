// Package words holds the project's vocabulary; it has tests only.
//
// Comments, messages and pages have none of the phrases in tables_test.go; a name of an exported type that more than
// three packages use stands in docs/glossary.md; and no function or method is called by a bare preposition, adverb or
// pronoun, as STYLE_GUIDE.md asks.
package words
