// The API reference: every name that a package exports, with its doc comment and its declaration, from the types.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
// TypeScript 7 has no compiler API.
import ts from 'typescript-api'

interface Entry {
  /** The module specifier: `@oxbow/core/schema`. */
  readonly name: string
  /** The package that the entry belongs to. */
  readonly home: string
  readonly file: string
}

interface Documented {
  readonly name: string
  readonly kind: 'Functions' | 'Values' | 'Classes' | 'Types'
  readonly comment: string
  readonly code: string
  /** The package whose source declares it; undefined for a name of a library. */
  readonly home: string | undefined
}

const KINDS = ['Functions', 'Classes', 'Values', 'Types'] as const

/**
 * @param root the folder of the workspace
 * @returns the text of each page by its file name (`core.md`); a name is documented on the page of the package that
 * declares it, and the page of another package that exports it links there
 */
export function apiPages(root: string): Map<string, string> {
  const entries = entriesOf(root)
  const options = ts.parseJsonConfigFileContent(
    ts.readConfigFile(join(root, 'tsconfig.json'), ts.sys.readFile).config,
    ts.sys,
    root,
  ).options
  const program = ts.createProgram({
    rootNames: entries.map((entry) => entry.file),
    options: { ...options, noEmit: true },
  })
  const checker = program.getTypeChecker()
  const exported = entries.map((entry) => {
    const source = program.getSourceFile(entry.file)
    const symbol = source && checker.getSymbolAtLocation(source)
    if (symbol === undefined) throw new Error(`${entry.name} exports nothing: ${entry.file}`)
    const names = checker.getExportsOfModule(symbol).flatMap((it) => document(it, checker, root) ?? [])
    if (names.length === 0) throw new Error(`${entry.name} exports nothing: ${entry.file}`)
    return { entry, names: names.toSorted((a, b) => a.name.localeCompare(b.name, 'en')) }
  })
  /** The page of a name: the first entry of its own package that exports it. */
  const at = new Map<string, Entry>()
  for (const { entry, names } of exported)
    for (const it of names) {
      const id = `${it.home}/${it.name}`
      if (it.home === entry.home && !at.has(id)) at.set(id, entry)
    }
  const pages = new Map<string, string>()
  for (const home of new Set(entries.map((entry) => entry.home))) {
    const sections = exported.filter(({ entry }) => entry.home === home)
    pages.set(`${home}.md`, page(sections, at))
  }
  return pages
}

function entriesOf(root: string): Entry[] {
  return readdirSync(join(root, 'packages')).flatMap((home) => {
    const manifest = join(root, 'packages', home, 'package.json')
    if (!existsSync(manifest)) return []
    const { name, exports = {} } = JSON.parse(readFileSync(manifest, 'utf8')) as {
      name: string
      exports?: Record<string, { 'oxbow-source'?: string }>
    }
    return Object.entries(exports).flatMap(([path, { 'oxbow-source': source }]) =>
      // Names that only Oxbow's own packages import are not part of the reference.
      source?.endsWith('.ts') && path !== './internal'
        ? [{ name: `${name}${path.slice(1)}`, home, file: join(root, 'packages', home, source) }]
        : [],
    )
  })
}

function page(
  sections: readonly { entry: Entry; names: readonly Documented[] }[],
  at: ReadonlyMap<string, Entry>,
): string {
  const parts = sections.map(({ entry, names }) => {
    const own = names.filter((it) => at.get(`${it.home}/${it.name}`) === entry)
    const others = names.filter((it) => it.home !== undefined && !own.includes(it))
    const kinds = KINDS.map((kind) => {
      const members = own.filter((it) => it.kind === kind)
      return members.length === 0
        ? ''
        : `## ${kind} {#${idOf(entry.name)}-${kind.toLowerCase()}}\n\n${members.map(section).join('\n')}`
    }).filter((it) => it !== '')
    const links = others.map((it) =>
      at.has(`${it.home}/${it.name}`) ? `[\`${it.name}\`](./${it.home}.md#${it.name})` : `\`${it.name}\``,
    )
    const also =
      links.length === 0 ? [] : [`## Documented elsewhere {#${idOf(entry.name)}-others}\n\n${links.join(' · ')}\n`]
    return [`# ${entry.name}\n\n\`\`\`js\nimport { … } from '${entry.name}'\n\`\`\`\n`, ...kinds, ...also].join('\n')
  })
  return `<!-- Written by "npm run docs" from the types. -->\n\n${parts.join('\n')}`
}

const idOf = (entry: string): string => entry.replaceAll(/[^a-z]+/g, '-').replace(/^-/, '')

const section = ({ name, comment, code }: Documented): string =>
  `### ${name} {#${name}}\n\n${comment === '' ? '' : `${comment}\n\n`}\`\`\`txt\n${code}\n\`\`\`\n`

function document(exported: ts.Symbol, checker: ts.TypeChecker, root: string): Documented[] | undefined {
  const symbol = exported.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported
  const declarations = (symbol.declarations ?? []).filter((it) => !ts.isSourceFile(it))
  const [first] = declarations
  if (first === undefined) return undefined
  const home = /^packages\/([^/]+)\//.exec(relative(root, first.getSourceFile().fileName))?.[1]
  const name = exported.name
  return [
    {
      name,
      home,
      kind: kindOf(first),
      comment: commentOf(declarations),
      code: declarations.map((it) => codeOf(it, name, checker)).join('\n'),
    },
  ]
}

function kindOf(node: ts.Declaration): Documented['kind'] {
  if (ts.isFunctionDeclaration(node)) return 'Functions'
  if (ts.isClassDeclaration(node)) return 'Classes'
  if (ts.isVariableDeclaration(node)) return isFunction(node) ? 'Functions' : 'Values'
  return 'Types'
}

const isFunction = (node: ts.VariableDeclaration): boolean =>
  node.initializer !== undefined && (ts.isArrowFunction(node.initializer) || ts.isFunctionExpression(node.initializer))

function codeOf(node: ts.Declaration, name: string, checker: ts.TypeChecker): string {
  if (ts.isFunctionDeclaration(node)) return upTo(node, node.body)
  if (ts.isVariableDeclaration(node)) {
    const given =
      node.type?.getText() ??
      checker.typeToString(checker.getTypeAtLocation(node), node, ts.TypeFormatFlags.NoTruncation)
    return `const ${name}: ${given}`
  }
  if (ts.isClassDeclaration(node)) {
    const members = node.members.filter((it) => !isPrivate(it)).map((it) => `  ${memberOf(it)}`)
    const heritage = node.heritageClauses?.map((it) => ` ${it.getText()}`).join('') ?? ''
    return `class ${name}${heritage} {\n${members.join('\n')}\n}`
  }
  return node.getText().replace(/^export /, '')
}

const isPrivate = (it: ts.ClassElement): boolean =>
  (it.name !== undefined && ts.isPrivateIdentifier(it.name)) ||
  (ts.getCombinedModifierFlags(it) & (ts.ModifierFlags.Private | ts.ModifierFlags.Protected)) !== 0

const memberOf = (it: ts.ClassElement): string =>
  ts.isConstructorDeclaration(it) || ts.isMethodDeclaration(it) || ts.isGetAccessorDeclaration(it)
    ? upTo(it, it.body)
    : it.getText()

/** The text of a declaration without its body. */
const upTo = (node: ts.Node, body: ts.Node | undefined): string => {
  const text = node.getText()
  return (body === undefined ? text : text.slice(0, body.getStart() - node.getStart())).replace(/^export /, '').trim()
}

function commentOf(declarations: readonly ts.Declaration[]): string {
  for (const declaration of declarations) {
    const node = ts.isVariableDeclaration(declaration) ? declaration.parent.parent : declaration
    const ranges = ts.getJSDocCommentsAndTags(node)
    const last = ranges.filter((it) => ts.isJSDoc(it)).at(-1)
    if (last !== undefined) return markdownOf(last.getText())
  }
  return ''
}

/** A doc comment as Markdown: tags become sentences, examples become code. */
export function markdownOf(comment: string): string {
  const text = comment
    .replace(/^\/\*\*/, '')
    .replace(/\*\/$/, '')
    .replaceAll(/^[ \t]*\* ?/gm, '')
    .trim()
  const [head = '', ...tags] = text.split(/^@(?=\w)|(?<=\. )@(?=\w)/m)
  const rest = tags.map((tag) => {
    const [, kind = '', body = ''] = /^(\w+)\s*([\s\S]*)$/.exec(tag) ?? []
    if (kind === 'example') return body.includes('```') ? body.trim() : `\`\`\`js\n${body.trim()}\n\`\`\``
    if (kind === 'param') return `- ${body.trim().replace(/^([\w.]+)\s*-?\s*/, '`$1`: ')}`
    const title = kind === 'returns' ? 'Returns' : kind === 'throws' ? 'Throws' : kind
    return `*${title}:* ${body.trim()}`
  })
  return [head.trim(), ...rest]
    .filter((it) => it !== '')
    .map(withoutMarkup)
    .join('\n\n')
}

/** Markdown pages are Vue templates: what looks like markup outside of code is escaped. */
function withoutMarkup(text: string): string {
  return text
    .split(/(```[\s\S]*?```|`[^`]*`)/)
    .map((part, n) => (n % 2 === 1 ? part : part.replaceAll('<', '&lt;').replaceAll('{{', '&#123;&#123;')))
    .join('')
}
