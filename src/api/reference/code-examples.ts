import type { ExampleRequest, Secret } from './example-request.ts';

/** Programs that send a request and print the answer, with nothing but what the language brings. `id` is for the page. */
export const LANGUAGES: readonly { id: string; name: string; write(request: ExampleRequest): string }[] = [
  { id: 'curl', name: 'curl', write: writeCurl },
  { id: 'js', name: 'JavaScript', write: writeJavaScript },
  { id: 'python', name: 'Python', write: writePython },
  { id: 'php', name: 'PHP', write: writePhp },
  { id: 'go', name: 'Go', write: writeGo },
  { id: 'java', name: 'Java', write: writeJava },
];

function writeCurl({ method, url, headers, body }: ExampleRequest): string {
  const quote = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;
  const header = (name: string, value: string | Secret) =>
    typeof value === 'string' ? quote(`${name}: ${value}`) : `"${name}: $${value.variable}"`;
  const usual = body === null ? 'GET' : 'POST';
  return [
    `curl -sS${method === usual ? '' : ` -X ${method}`} ${quote(url)}`,
    ...headers.map(([name, value]) => `-H ${header(name, value)}`),
    ...(body === null ? [] : [`-d ${quote(body)}`]),
  ].join(' \\\n  ');
}

function writeJavaScript({ method, url, headers, body }: ExampleRequest): string {
  const read = ({ variable }: Secret) => `process.env.${variable}`;
  return lines(
    `const answer = await fetch(${single(url)}, {`,
    `  method: ${single(method)},`,
    '  headers: {',
    ...headers.map(([name, value]) => `    ${single(name)}: ${writeValue(value, single, read)},`),
    '  },',
    body !== null && `  body: ${single(body)},`,
    '});',
    'console.log(answer.status, await answer.text());',
  );
}

function writePython({ method, url, headers, body }: ExampleRequest): string {
  const read = ({ variable }: Secret) => `os.environ[${single(variable)}]`;
  return lines(
    'import os',
    'from urllib.request import Request, urlopen',
    '',
    'request = Request(',
    `    ${single(url)},`,
    `    method=${single(method)},`,
    '    headers={',
    ...headers.map(([name, value]) => `        ${single(name)}: ${writeValue(value, single, read)},`),
    '    },',
    body !== null && `    data=${single(body)}.encode(),`,
    ')',
    'with urlopen(request) as answer:  # HTTPError.read() is the problem',
    '    print(answer.status, answer.read().decode())',
  );
}

function writePhp({ method, url, headers, body }: ExampleRequest): string {
  const header = (name: string, value: string | Secret) =>
    typeof value === 'string' ? single(`${name}: ${value}`) : `${single(`${name}: `)} . getenv('${value.variable}')`;
  return lines(
    '<?php',
    `$request = curl_init(${single(url)});`,
    'curl_setopt_array($request, [',
    `    CURLOPT_CUSTOMREQUEST => ${single(method)},`,
    '    CURLOPT_HTTPHEADER => [',
    ...headers.map(([name, value]) => `        ${header(name, value)},`),
    '    ],',
    body !== null && `    CURLOPT_POSTFIELDS => ${single(body)},`,
    '    CURLOPT_RETURNTRANSFER => true,',
    ']);',
    '$answer = curl_exec($request);',
    "echo curl_getinfo($request, CURLINFO_RESPONSE_CODE), ' ', $answer;",
  );
}

function writeGo({ method, url, headers, body }: ExampleRequest): string {
  const read = ({ variable }: Secret) => `os.Getenv(${double(variable)})`;
  return lines(
    'package main',
    '',
    'import (',
    '\t"fmt"',
    '\t"io"',
    '\t"net/http"',
    '\t"os"',
    body !== null && '\t"strings"',
    ')',
    '',
    'func main() {',
    `\trequest, err := http.NewRequest(${double(method)}, ${double(url)}, ${body === null ? 'nil' : `strings.NewReader(${double(body)})`})`,
    '\tif err != nil {',
    '\t\tpanic(err)',
    '\t}',
    ...headers.map(([name, value]) => `\trequest.Header.Set(${double(name)}, ${writeValue(value, double, read)})`),
    '\tanswer, err := http.DefaultClient.Do(request)',
    '\tif err != nil {',
    '\t\tpanic(err)',
    '\t}',
    '\tdefer answer.Body.Close()',
    '\ttext, err := io.ReadAll(answer.Body)',
    '\tfmt.Println(answer.StatusCode, string(text), err)',
    '}',
  );
}

function writeJava({ method, url, headers, body }: ExampleRequest): string {
  const read = ({ variable }: Secret) => `System.getenv(${double(variable)})`;
  const publisher = body === null ? 'noBody()' : `ofString(${double(body)})`;
  return lines(
    'import java.net.URI;',
    'import java.net.http.*;',
    '',
    'public class Example {',
    '  public static void main(String[] arguments) throws Exception {',
    `    var request = HttpRequest.newBuilder(URI.create(${double(url)}))`,
    `        .method(${double(method)}, HttpRequest.BodyPublishers.${publisher})`,
    ...headers.map(([name, value]) => `        .header(${double(name)}, ${writeValue(value, double, read)})`),
    '        .build();',
    '    var answer = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());',
    '    System.out.println(answer.statusCode() + " " + answer.body());',
    '  }',
    '}',
  );
}

function writeValue(value: string | Secret, quote: (text: string) => string, read: (secret: Secret) => string): string {
  return typeof value === 'string' ? quote(value) : read(value);
}

/** A literal of JavaScript, Python and PHP: none of them reads anything else in it. The text is one line. */
function single(text: string): string {
  return `'${text.replaceAll(/['\\]/g, '\\$&')}'`;
}

/** A literal of Go and Java. */
function double(text: string): string {
  return JSON.stringify(text);
}

function lines(...each: (string | false)[]): string {
  return each.filter((line) => line !== false).join('\n');
}
