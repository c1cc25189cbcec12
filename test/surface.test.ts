import { fileURLToPath } from 'node:url'
// TypeScript 7 has no compiler API.
import ts from 'typescript-api'
import { describe, expect, test } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))

interface PublicName {
  readonly name: string
  readonly runtime: boolean
  readonly callable: boolean
  readonly comment: string
  readonly tags: readonly string[]
}

/** The exports of an entry, as the compiler sees them. */
function namesOf(entry: string): PublicName[] {
  const config = ts.readConfigFile(`${root}tsconfig.json`, ts.sys.readFile).config
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, root)
  const program = ts.createProgram({ rootNames: [`${root}${entry}`], options: { ...options, noEmit: true } })
  const checker = program.getTypeChecker()
  const source = program.getSourceFile(`${root}${entry}`)
  return checker.getExportsOfModule(checker.getSymbolAtLocation(source!)!).map((exported) => {
    const symbol = exported.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported
    const type = checker.getTypeOfSymbol(symbol)
    return {
      name: exported.name,
      runtime: (symbol.flags & ts.SymbolFlags.Value) !== 0,
      callable: type.getCallSignatures().length > 0,
      comment: ts.displayPartsToString(symbol.getDocumentationComment(checker)),
      tags: symbol.getJsDocTags(checker).map((tag) => tag.name),
    }
  })
}

describe('the surface of the library', () => {
  const names = namesOf('packages/oxbow/src/index.ts')

  test('is at most 140 names', () => {
    expect(names.length).toBeGreaterThan(60)
    expect(names.length).toBeLessThanOrEqual(140)
  })

  test('has a doc comment at every value, and an example at every function', () => {
    const values = names.filter((it) => it.runtime)
    expect(values.length).toBeGreaterThan(30)
    expect(values.filter((it) => it.comment === '').map((it) => it.name)).toEqual([])
    expect(values.filter((it) => it.callable && !it.tags.includes('example')).map((it) => it.name)).toEqual([])
  })
})
