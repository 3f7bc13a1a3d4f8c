//! Which rules of a schema a document breaks, in the shape of MongoDB's validation errors.

use espalier_value::{ArrayBuf, DocBuf, RawArray, RawDoc, ValueRef};

use super::{Dependency, Keyword, Others, Rule, Schema, duplicate};

/// The details of a document that fails `source`.
pub(crate) fn explain(source: RawDoc<'_>, doc: RawDoc<'_>) -> DocBuf {
    // It was parsed when the filter was; a schema that no longer parses has nothing to say.
    let Ok(schema) = Schema::parse(source) else { return named("$jsonSchema") };
    root(&schema, source, doc)
}

fn root(schema: &Schema, source: RawDoc<'_>, doc: RawDoc<'_>) -> DocBuf {
    let mut details = named("$jsonSchema");
    if excludes_documents(schema) {
        details.append_doc("specifiedAs", |spec| {
            spec.append("$jsonSchema", source);
        });
        details.append("reason", "expression always evaluates to false");
    } else {
        annotate(source, &mut details);
        details.append("schemaRulesNotSatisfied", &rules(schema, source, ValueRef::Document(doc), true));
    }
    details
}

fn excludes_documents(schema: &Schema) -> bool {
    let document = ValueRef::Document(RawDoc::EMPTY);
    schema.keywords.iter().any(|k| matches!(k, Keyword::Type { types, .. } if !types.contains(document)))
}

/// `title` and `description`, where the schema has them.
fn annotate(source: RawDoc<'_>, out: &mut DocBuf) {
    for name in ["title", "description"] {
        if let Some(text) = source.get_str(name) {
            out.append(name, text);
        }
    }
}

/// One entry for each rule that the value breaks. `root`: the value is the document itself.
fn rules(schema: &Schema, source: RawDoc<'_>, value: ValueRef<'_>, root: bool) -> ArrayBuf {
    let mut out = ArrayBuf::new();
    for keyword in &schema.keywords {
        // An error (a pattern that gives up) is no match.
        if !keyword.matches(value).unwrap_or(false) {
            Rules { source, value, root, out: &mut out }.keyword(keyword);
        }
    }
    out
}

struct Rules<'a, 'o> {
    source: RawDoc<'a>,
    value: ValueRef<'a>,
    root: bool,
    out: &'o mut ArrayBuf,
}

impl Rules<'_, '_> {
    fn keyword(&mut self, keyword: &Keyword) {
        const COMPARED: &str = "comparison failed";
        const LENGTH: &str = "specified string length was not satisfied";
        match keyword {
            Keyword::Type { json, .. } => self.types(if *json { "type" } else { "bsonType" }),
            Keyword::Enum(values) => {
                let possible = !self.root || values.iter().any(|v| matches!(v.or_null(), ValueRef::Document(_)));
                match possible {
                    true => self.plain("enum", None, "value was not found in enum"),
                    false => {
                        let mut entry = self.specified("enum", None);
                        entry.append("reason", "expression always evaluates to false");
                        self.out.push(&entry);
                    }
                }
            }
            Keyword::AllOf(schemas) => self.alternatives("allOf", schemas),
            Keyword::AnyOf(schemas) => self.alternatives("anyOf", schemas),
            Keyword::OneOf(schemas) => self.one_of(schemas),
            Keyword::Not(_) => {
                let mut entry = named("not");
                entry.append("reason", "child expression matched");
                self.out.push(&entry);
            }
            Keyword::Minimum { .. } => self.plain("minimum", Some("exclusiveMinimum"), COMPARED),
            Keyword::Maximum { .. } => self.plain("maximum", Some("exclusiveMaximum"), COMPARED),
            Keyword::MultipleOf(_) => {
                self.plain("multipleOf", None, "considered value is not a multiple of the specified value");
            }
            Keyword::MinLength(_) => self.plain("minLength", None, LENGTH),
            Keyword::MaxLength(_) => self.plain("maxLength", None, LENGTH),
            Keyword::Pattern(_) => self.plain("pattern", None, "regular expression did not match"),
            _ => match self.value {
                ValueRef::Document(doc) => self.object(keyword, doc),
                ValueRef::Array(array) => self.array(keyword, array),
                _ => {}
            },
        }
    }

    fn object(&mut self, keyword: &Keyword, doc: RawDoc<'_>) {
        match keyword {
            Keyword::Required(names) => {
                let mut entry = self.specified("required", None);
                let mut names = names.clone();
                names.sort();
                entry.append("missingProperties", &missing(&names, doc));
                self.out.push(&entry);
            }
            Keyword::Properties(properties) => {
                let source = self.source.get_doc("properties").unwrap_or(RawDoc::EMPTY);
                let mut entry = named("properties");
                entry.append_array("propertiesNotSatisfied", |list| {
                    for (name, schema) in properties {
                        let (Some(value), Some(inner)) = (doc.get(name), source.get_doc(name)) else { continue };
                        if !passes(schema, value) {
                            list.push_doc(|out| {
                                out.append("propertyName", &**name);
                                annotate(inner, out);
                                out.append("details", &rules(schema, inner, value, false));
                            });
                        }
                    }
                });
                self.out.push(&entry);
            }
            Keyword::Others(others) => {
                self.additional_properties(others, doc);
                self.pattern_properties(others, doc);
            }
            Keyword::MinProperties(_) => self.count("minProperties", doc),
            Keyword::MaxProperties(_) => self.count("maxProperties", doc),
            Keyword::Dependencies(dependencies) => {
                let source = self.source.get_doc("dependencies").unwrap_or(RawDoc::EMPTY);
                let mut entry = named("dependencies");
                entry.append_array("failingDependencies", |list| {
                    for (name, dependency) in dependencies {
                        if doc.elem(name).is_none() || dependency.matches(doc).unwrap_or(false) {
                            continue;
                        }
                        list.push_doc(|out| {
                            out.append("conditionalProperty", &**name);
                            match dependency {
                                Dependency::Fields(names) => out.append("missingProperties", &missing(names, doc)),
                                Dependency::Schema(schema) => {
                                    let inner = source.get_doc(name).unwrap_or(RawDoc::EMPTY);
                                    out.append("details", &rules(schema, inner, ValueRef::Document(doc), true))
                                }
                            };
                        });
                    }
                });
                self.out.push(&entry);
            }
            _ => {}
        }
    }

    fn additional_properties(&mut self, others: &Others, doc: RawDoc<'_>) {
        let additional = || doc.iter().filter(|e| others.is_additional(e.name()).unwrap_or(true));
        match &others.additional {
            Some(Rule::Forbidden) if additional().next().is_some() => {
                let mut entry = self.specified("additionalProperties", None);
                let names: ArrayBuf = additional().map(|e| ValueRef::String(e.name())).collect();
                entry.append("additionalProperties", &names);
                self.out.push(&entry);
            }
            Some(Rule::Schema(schema)) => {
                let Some(failing) = additional().find(|e| !passes(schema, e.value())) else { return };
                let source = self.source.get_doc("additionalProperties").unwrap_or(RawDoc::EMPTY);
                let mut entry = named("additionalProperties");
                annotate(source, &mut entry);
                entry.append("reason", "at least one additional property did not match the subschema");
                entry.append("failingProperty", failing.name());
                entry.append("details", &rules(schema, source, failing.value(), false));
                self.out.push(&entry);
            }
            _ => {}
        }
    }

    /// The first failing field of each pattern.
    fn pattern_properties(&mut self, others: &Others, doc: RawDoc<'_>) {
        let source = self.source.get_doc("patternProperties").unwrap_or(RawDoc::EMPTY);
        let mut list = ArrayBuf::new();
        for ((regex, schema), inner) in others.patterns.iter().zip(source.iter()) {
            let fails = |name: &str, value| regex.is_match(name).unwrap_or(true) && !passes(schema, value);
            let Some(failing) = doc.iter().find(|e| fails(e.name(), e.value())) else { continue };
            let inner_source = inner.value().as_doc().unwrap_or(RawDoc::EMPTY);
            list.push_doc(|out| {
                out.append("propertyName", failing.name());
                annotate(inner_source, out);
                out.append("regexMatched", inner.name());
                out.append("details", &rules(schema, inner_source, failing.value(), false));
            });
        }
        if !list.is_empty() {
            let mut entry = named("patternProperties");
            entry.append("details", &list);
            self.out.push(&entry);
        }
    }

    fn array(&mut self, keyword: &Keyword, array: RawArray<'_>) {
        match keyword {
            Keyword::MinItems(_) => self.items_count("minItems", array),
            Keyword::MaxItems(_) => self.items_count("maxItems", array),
            Keyword::UniqueItems => {
                let mut entry = self.specified("uniqueItems", None);
                entry.append("reason", "found a duplicate item");
                entry.append("consideredValue", array);
                if let Some(value) = duplicate(array) {
                    entry.append("duplicatedValue", value);
                }
                self.out.push(&entry);
            }
            Keyword::Items(schema) => {
                self.failing_item("items", schema, array, 0, "At least one item did not match the sub-schema");
            }
            Keyword::ItemList(schemas) => {
                let sources = self.source.get("items").and_then(ValueRef::as_array).unwrap_or(RawArray::EMPTY);
                let mut entry = named("items");
                entry.append_array("details", |list| {
                    for (index, ((schema, source), value)) in
                        schemas.iter().zip(sources.iter()).zip(array.iter()).enumerate()
                    {
                        if passes(schema, value) {
                            continue;
                        }
                        let source = source.as_doc().unwrap_or(RawDoc::EMPTY);
                        list.push_doc(|out| {
                            out.append("itemIndex", i64::from(number(index)));
                            out.append("details", &rules(schema, source, value, false));
                        });
                    }
                });
                self.out.push(&entry);
            }
            Keyword::AdditionalItems { from, rule: Rule::Forbidden } => {
                let mut entry = self.specified("additionalItems", None);
                entry.append("reason", "found additional items");
                let items: ArrayBuf = array.iter().skip(*from).collect();
                entry.append("additionalItems", &items);
                self.out.push(&entry);
            }
            Keyword::AdditionalItems { from, rule: Rule::Schema(schema) } => {
                let reason = "At least one additional item did not match the sub-schema";
                self.failing_item("additionalItems", schema, array, *from, reason);
            }
            _ => {}
        }
    }

    fn failing_item(&mut self, name: &str, schema: &Schema, array: RawArray<'_>, from: usize, reason: &str) {
        let source = self.source.get_doc(name).unwrap_or(RawDoc::EMPTY);
        let Some((index, value)) = array.iter().enumerate().skip(from).find(|(_, v)| !passes(schema, *v)) else {
            return;
        };
        let mut entry = named(name);
        annotate(source, &mut entry);
        entry.append("reason", reason);
        entry.append("itemIndex", number(index));
        entry.append("details", &rules(schema, source, value, false));
        self.out.push(&entry);
    }

    /// A rule about the value as such.
    fn plain(&mut self, name: &str, with: Option<&str>, reason: &str) {
        let mut entry = self.specified(name, with);
        entry.append("reason", reason);
        entry.append("consideredValue", self.value);
        self.out.push(&entry);
    }

    fn types(&mut self, name: &str) {
        let mut entry = self.specified(name, None);
        entry.append("reason", "type did not match");
        entry.append("consideredValue", self.value);
        entry.append("consideredType", self.value.ty().name());
        self.out.push(&entry);
    }

    fn count(&mut self, name: &str, doc: RawDoc<'_>) {
        let mut entry = self.specified(name, None);
        entry.append("reason", "specified number of properties was not satisfied");
        entry.append("numberOfProperties", number(doc.count()));
        self.out.push(&entry);
    }

    fn items_count(&mut self, name: &str, array: RawArray<'_>) {
        let mut entry = self.specified(name, None);
        entry.append("reason", "array did not match specified length");
        entry.append("consideredValue", array);
        entry.append("numberOfItems", number(array.len()));
        self.out.push(&entry);
    }

    /// `allOf` and `anyOf`: the schemas that fail.
    fn alternatives(&mut self, name: &str, schemas: &[Schema]) {
        let mut entry = named(name);
        entry.append("schemasNotSatisfied", &self.failing(name, schemas));
        self.out.push(&entry);
    }

    fn one_of(&mut self, schemas: &[Schema]) {
        let mut entry = named("oneOf");
        let matching: ArrayBuf = (schemas.iter().enumerate())
            .filter(|(_, schema)| passes(schema, self.value))
            .map(|(index, _)| ValueRef::Int32(number(index)))
            .collect();
        if matching.is_empty() {
            entry.append("schemasNotSatisfied", &self.failing("oneOf", schemas));
        } else {
            entry.append("reason", "more than one subschema matched");
            entry.append("matchingSchemaIndexes", &matching);
        }
        self.out.push(&entry);
    }

    fn failing(&self, name: &str, schemas: &[Schema]) -> ArrayBuf {
        let sources = self.source.get(name).and_then(ValueRef::as_array).unwrap_or(RawArray::EMPTY);
        let mut list = ArrayBuf::new();
        for (index, (schema, source)) in schemas.iter().zip(sources.iter()).enumerate() {
            if passes(schema, self.value) {
                continue;
            }
            let source = source.as_doc().unwrap_or(RawDoc::EMPTY);
            list.push_doc(|out| {
                out.append("index", number(index));
                match self.value {
                    ValueRef::Document(doc) if self.root && excludes_documents(schema) => {
                        out.append("details", &root(schema, source, doc));
                    }
                    value => {
                        annotate(source, out);
                        out.append("details", &rules(schema, source, value, self.root));
                    }
                }
            });
        }
        list
    }

    /// The name of the rule and the rule as it was written, `with` a keyword that belongs to it.
    fn specified(&self, name: &str, with: Option<&str>) -> DocBuf {
        let mut entry = named(name);
        entry.append_doc("specifiedAs", |spec| {
            for name in [Some(name), with].into_iter().flatten() {
                if let Some(elem) = self.source.elem(name) {
                    spec.append_elem(elem);
                }
            }
        });
        entry
    }
}

fn passes(schema: &Schema, value: ValueRef<'_>) -> bool {
    schema.matches(value).unwrap_or(false)
}

fn missing(names: &[Box<str>], doc: RawDoc<'_>) -> ArrayBuf {
    names.iter().filter(|name| doc.elem(name).is_none()).map(|name| ValueRef::String(name)).collect()
}

fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

fn named(operator: &str) -> DocBuf {
    let mut details = DocBuf::new();
    details.append("operatorName", operator);
    details
}
