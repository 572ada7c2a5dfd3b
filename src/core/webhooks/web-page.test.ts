import { expect, test } from 'vitest';
import { quotePage, refusePage } from './web-page.ts';

test.each([
  ['<!doctype html><html><head><title>Log in – Shop</title></head><body>…', 'Log in – Shop'],
  [
    '\n\n<!-- a cache --><!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 4.01//EN"><html><title>\n Just a\nmoment </title>',
    'Just a moment',
  ],
  ['<?xml version="1.0"?><!DOCTYPE html PUBLIC "x"><html><body><h1>Wartung</h1></body>', 'Wartung'],
  ['<script>location="/challenge"</script>', 'a page without text'],
  ['<br />\n<b>Fatal error</b>: Uncaught Error', 'Fatal error : Uncaught Error'],
  [`<html>${'<p>word</p>'.repeat(500)}`, expect.stringMatching(/^word word .{0,70}…$/)],
])('%j is a web page', (answer, words) => {
  expect(quotePage(answer)).toEqual(words);
  expect(refusePage(Buffer.from(answer))).toMatch(/^web_page: /);
});

test.each([
  ...['ok', '', 'OK <html>', '{"html":"<html>"}', '<Response/>', '<?xml version="1.0"?><ok/>', '<htmlish>', '\u0000<!'],
])('%j is what a receiver may answer', (answer) => {
  expect(quotePage(answer)).toBeNull();
  expect(refusePage(Buffer.from(answer))).toBeNull();
});
