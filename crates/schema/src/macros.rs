//! Macros that define scenario tables, families and choices as Rust types.

/// Define a struct as a table of scenarios:
/// `table! { /// About it. pub struct Params "kind" { /// About the key. key: Type = takes, default; } }`.
/// `key as "name"` defines a name in scenarios that differs from the compiled one. A key without a default is
/// required, or optional if its type is an [`Option`]. The struct may be followed by `rules`, a function that checks
/// rules on several keys (see [`Rules`](crate::Rules)).
#[macro_export]
macro_rules! table {
    (
        $(#[doc = $about:literal])+
        $vis:vis struct $name:ident $kind:literal {
            $($(#[doc = $key_about:literal])+ $key:ident $(as $written:literal)?: $type:ty = $takes:expr $(, $default:expr)?;)*
        }
        $(elsewhere $elsewhere:ident)?
        $(rules $rules:expr)?
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq)]
        $vis struct $name {
            $($(#[doc = $key_about])+ pub $key: $type,)*
        }

        impl $name {
            /// Description of the table.
            $vis const TABLE: &'static $crate::Table = &$crate::Table {
                kind: $kind,
                about: concat!($($about, "\n"),+),
                keys: &[$($crate::Key {
                    name: $crate::name_of!($key $($written)?),
                    compiled: stringify!($key),
                    about: concat!($($key_about, "\n"),+),
                    takes: $takes,
                    absent: || $crate::absent::<$type>($crate::default_of!($type $(, $default)?)),
                }),*],
                elsewhere: $crate::elsewhere_of!($($elsewhere)?),
            };

            /// Return a copy in which the keys given by `value` are replaced.
            #[allow(dead_code, unused_mut, unused_variables, reason = "few tables have variants; some have no keys")]
            $vis fn over(&self, value: &$crate::Value) -> Result<Self, $crate::Refusal> {
                let reader = $crate::Reader::new(value, Self::TABLE)?;
                let mut keys = 0..;
                let mut next = || keys.next().expect("invariant: endless");
                Ok($name { $($key: reader.key(next(), || Some(self.$key.clone()))?,)* })
            }
        }

        impl $crate::Described for $name {
            #[allow(unused_mut, unused_variables, reason = "a table may have no keys")]
            fn read(value: &$crate::Value) -> Result<Self, $crate::Refusal> {
                let reader = $crate::Reader::new(value, Self::TABLE)?;
                let mut keys = 0..;
                let mut next = || keys.next().expect("invariant: endless");
                Ok($name {
                    $($key: reader.key(next(), || $crate::default_of!($type $(, $default)?))?,)*
                })
            }
            fn write(&self) -> $crate::Value {
                $crate::Value::Table(vec![
                    ("kind".to_string(), $crate::Value::Text($kind.to_string())),
                    $((stringify!($key).to_string(), $crate::Described::write(&self.$key)),)*
                ])
            }
            #[allow(unused_variables, reason = "a table may have no keys")]
            fn judge(&self, place: &$crate::Place, broken: &mut Vec<$crate::Refusal>) {
                $($crate::Described::judge(&self.$key, &place.key(stringify!($key)), broken);)*
                $(
                    let rules: fn(&$name, &mut $crate::Rules) = $rules;
                    rules(self, &mut $crate::Rules::new(place, Self::TABLE, &|| $crate::Described::write(self), broken));
                )?
            }
        }
    };
}

/// Name of a key in a scenario.
#[doc(hidden)]
#[macro_export]
macro_rules! name_of {
    ($key:ident) => {
        stringify!($key)
    };
    ($key:ident $written:literal) => {
        $written
    };
}

/// Keys that users look for in a table by mistake.
#[doc(hidden)]
#[macro_export]
macro_rules! elsewhere_of {
    () => {
        &[]
    };
    ($elsewhere:ident) => {
        $elsewhere
    };
}

/// Default of a [`table!`](crate::table) key.
#[doc(hidden)]
#[macro_export]
macro_rules! default_of {
    ($type:ty) => {
        <$type as $crate::Described>::absent()
    };
    ($type:ty, $default:expr) => {
        Some($default)
    };
}

/// Define an enum of tables, selected by the key `kind`:
/// `family! { /// About them. pub enum Config "name" { Variant(Params), } }`.
#[macro_export]
macro_rules! family {
    (
        $(#[doc = $about:literal])+
        $vis:vis enum $name:ident $family:literal { $($variant:ident($params:ty),)+ }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq)]
        $vis enum $name {
            $(#[doc = concat!("See [`", stringify!($params), "`].")] $variant($params),)+
        }

        impl $name {
            /// All tables of the family.
            $vis const FAMILY: &'static $crate::Family =
                &$crate::Family { name: $family, tables: &[$(<$params>::TABLE),+] };
        }

        impl $crate::Described for $name {
            fn read(value: &$crate::Value) -> Result<Self, $crate::Refusal> {
                let kind = match value.get("kind") {
                    Some($crate::Value::Text(kind)) => kind.as_str(),
                    _ => "",
                };
                $(if kind == <$params>::TABLE.kind {
                    return $crate::Described::read(value).map($name::$variant);
                })+
                let kinds: Vec<&str> = Self::FAMILY.tables.iter().map(|table| table.kind).collect();
                Err($crate::Refusal::new(format_args!("{kind:?}"), kinds.join(", ")).within("kind"))
            }
            fn write(&self) -> $crate::Value {
                match self {
                    $($name::$variant(params) => $crate::Described::write(params),)+
                }
            }
            fn judge(&self, place: &$crate::Place, broken: &mut Vec<$crate::Refusal>) {
                match self {
                    $($name::$variant(params) => $crate::Described::judge(params, place, broken),)+
                }
            }
        }
    };
}

/// Name the variants of an enum in scenarios: `choice! { Close: Server "server", Client "client" }`.
#[macro_export]
macro_rules! choice {
    ($name:ident: $($variant:ident $text:literal),+) => {
        impl $name {
            /// Permitted values of a key with one of these names.
            pub const TAKES: $crate::Takes = $crate::Takes::Choice(&[$($text),+]);
        }

        impl $crate::Described for $name {
            fn read(value: &$crate::Value) -> Result<Self, $crate::Refusal> {
                match value {
                    $($crate::Value::Text(text) if text == $text => Ok($name::$variant),)+
                    _ => Err($crate::Refusal::new(value, [$($text),+].join(", "))),
                }
            }
            fn write(&self) -> $crate::Value {
                $crate::Value::Text(match self { $($name::$variant => $text,)+ }.to_string())
            }
        }
    };
}
