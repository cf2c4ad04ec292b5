/**
 * @module Hides all programs of this machine from the unit tests, so that a test that needs one
 * fails everywhere.
 */

process.env.PATH = '/nonexistent';
